#include "mask/mask_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace longca {
namespace {

constexpr std::array<std::string_view, 4> kTypeNames = {"full", "causal", "inverse_causal",
                                                        "bi_causal"};

}  // namespace

std::string_view to_string(MaskSliceType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::optional<MaskSliceType> parse_slice_type(std::string_view text) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == text) return static_cast<MaskSliceType>(i);
  }
  return std::nullopt;
}

std::string to_string(const MaskSlice& slice) {
  return fmt::format("[{}, {}) × [{}, {}) {}", slice.q_begin, slice.q_end, slice.k_begin,
                     slice.k_end, to_string(slice.type));
}

Range MaskSlice::keys_of(std::int64_t q) const {
  if (q < q_begin || q >= q_end) return {k_begin, k_begin};
  const Range keys = Band::of(*this).keys_of(q);
  return keys.empty() ? Range{k_begin, k_begin} : keys;
}

bool MaskSlice::allows(std::int64_t q, std::int64_t k) const {
  const Range keys = keys_of(q);
  return k >= keys.begin && k < keys.end;
}

std::int64_t MaskSlice::area() const {
  return Band::of(*this).area();
}

namespace {

/// Sum over x < end of clamp(x, 0, top).
std::int64_t clamped_sum(std::int64_t end, std::int64_t top) {
  if (end <= 0) return 0;
  if (end <= top) return end * (end - 1) / 2;
  return top * (top - 1) / 2 + (end - top) * top;
}

/// Cells of the rectangle with k − q ≤ limit: row q has clamp(q + limit + 1 − k.begin, 0, keys).
std::int64_t area_up_to(const Band& band, std::int64_t limit) {
  const std::int64_t first =
      std::clamp(limit, band.k.begin - band.q.end, band.k.end - 1 - band.q.begin) + band.q.begin +
      1 - band.k.begin;
  const std::int64_t keys = band.k.size();
  return clamped_sum(first + band.q.size(), keys) - clamped_sum(first, keys);
}

}  // namespace

Band Band::of(const MaskSlice& slice) {
  Band band{{slice.q_begin, slice.q_end}, {slice.k_begin, slice.k_end}, -kNoLimit, kNoLimit};
  if (slice.type == MaskSliceType::causal || slice.type == MaskSliceType::bi_causal) {
    band.hi = slice.k_end - slice.q_end;
  }
  if (slice.type == MaskSliceType::inverse_causal || slice.type == MaskSliceType::bi_causal) {
    band.lo = slice.k_begin - slice.q_begin;
  }
  return band;
}

Range Band::rows() const {
  const Range rows = {std::max(q.begin, k.begin - hi), std::min(q.end, k.end - lo)};
  if (lo > hi || k.empty() || rows.empty()) return {q.begin, q.begin};
  return rows;
}

Range Band::keys_of(std::int64_t row) const {
  return {std::max(k.begin, row + lo), std::min(k.end, row + hi + 1)};
}

std::int64_t Band::area() const {
  if (q.empty() || k.empty() || lo > hi) return 0;
  return area_up_to(*this, hi) - area_up_to(*this, lo - 1);
}

Band Band::clipped(Range q_range, Range k_range) const {
  return {intersect(q, q_range), intersect(k, k_range), lo, hi};
}

Band Band::intersected(const Band& other) const {
  return {intersect(q, other.q), intersect(k, other.k), std::max(lo, other.lo),
          std::min(hi, other.hi)};
}

std::vector<Range> rows_of(std::span<const Band> bands) {
  std::vector<Range> rows;
  rows.reserve(bands.size());
  for (const Band& band : bands) rows.push_back(band.rows());
  return rows;
}

void append_band(std::vector<MaskSlice>& slices, const Band& band) {
  const Range rows = band.rows();
  // The diagonal `hi` limits the rows before `upper`, the diagonal `lo` those from `lower` on.
  const std::int64_t upper = std::clamp(band.k.end - band.hi, rows.begin, rows.end);
  const std::int64_t lower = std::clamp(band.k.begin - band.lo, rows.begin, rows.end);
  const std::array<std::int64_t, 4> cuts = {rows.begin, std::min(upper, lower),
                                            std::max(upper, lower), rows.end};
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Range part = {cuts[i], cuts[i + 1]};
    if (part.empty()) continue;
    const bool limited_above = part.end <= upper;
    const bool limited_below = part.begin >= lower;
    const MaskSliceType type =
        limited_above ? (limited_below ? MaskSliceType::bi_causal : MaskSliceType::causal)
                      : (limited_below ? MaskSliceType::inverse_causal : MaskSliceType::full);
    slices.push_back({part.begin, part.end, limited_below ? part.begin + band.lo : band.k.begin,
                      limited_above ? part.end + band.hi : band.k.end, type});
  }
}

namespace {

/// The bounding box and the number of cells of a slice that has some.
struct Extent {
  Range rows, keys;
  std::int64_t area = 0;

  static Extent of(const MaskSlice& slice) {
    const Range rows = {slice.q_begin, slice.q_end};
    const Range keys = {slice.k_begin, slice.k_end};
    if (slice.type == MaskSliceType::full || rows.size() <= keys.size()) {
      return {rows, keys, area_of(slice.type, rows.size(), keys.size())};
    }
    const Band band = Band::of(slice);  // some rows may have no cell
    const Range used = band.rows();
    return {used, {band.keys_of(used.begin).begin, band.keys_of(used.end - 1).end}, band.area()};
  }

  /// Band::area of a slice of `type` with a cell in every row; −1 if some row must be empty.
  static std::int64_t area_of(MaskSliceType type, std::int64_t rows, std::int64_t keys) {
    if (type == MaskSliceType::full) return rows * keys;
    if (rows > keys) return -1;
    if (type == MaskSliceType::bi_causal) return rows * (keys - rows + 1);
    return rows * keys - rows * (rows - 1) / 2;
  }
};

/// The slice with exactly the cells of two disjoint slices, if there is one: over their bounding
/// box, it contains both and has as many cells as they have together.
std::optional<MaskSlice> union_of(const MaskSlice& first, const MaskSlice& second) {
  if (first.type == MaskSliceType::full && second.type == MaskSliceType::full) {
    const bool same_keys = first.k_begin == second.k_begin && first.k_end == second.k_end;
    const bool apart = first.q_end <= second.q_begin || second.q_end <= first.q_begin;
    // Several rows with the same keys exist in a full slice only.
    const bool tall = first.q_end - first.q_begin > 1 || second.q_end - second.q_begin > 1;
    if (apart && tall && !same_keys) return std::nullopt;
  }
  const Extent a = Extent::of(first);
  const Extent b = Extent::of(second);
  if (a.keys.end < b.keys.begin || b.keys.end < a.keys.begin) return std::nullopt;
  MaskSlice box = {std::min(a.rows.begin, b.rows.begin), std::max(a.rows.end, b.rows.end),
                   std::min(a.keys.begin, b.keys.begin), std::max(a.keys.end, b.keys.end)};
  const std::int64_t rows = box.q_end - box.q_begin;
  const std::int64_t keys = box.k_end - box.k_begin;
  constexpr std::array kTypes = {MaskSliceType::full, MaskSliceType::causal,
                                 MaskSliceType::inverse_causal, MaskSliceType::bi_causal};
  for (const MaskSliceType type : kTypes) {
    if (Extent::area_of(type, rows, keys) != a.area + b.area) continue;
    box.type = type;
    if (type == MaskSliceType::full) return box;
    const Band candidate = Band::of(box);
    if (candidate.intersected(Band::of(first)).area() == a.area &&
        candidate.intersected(Band::of(second)).area() == b.area) {
      return box;
    }
  }
  return std::nullopt;
}

std::vector<MaskSlice> join_same_rows(std::vector<MaskSlice> slices) {
  const auto before = [](const MaskSlice& a, const MaskSlice& b) {
    return std::tie(a.q_begin, a.q_end, a.k_begin) < std::tie(b.q_begin, b.q_end, b.k_begin);
  };
  if (!std::is_sorted(slices.begin(), slices.end(), before)) {
    std::sort(slices.begin(), slices.end(), before);
  }
  std::size_t count = 0;
  for (const MaskSlice& slice : slices) {
    MaskSlice* last = count > 0 ? &slices[count - 1] : nullptr;
    const bool same_rows =
        last != nullptr && last->q_begin == slice.q_begin && last->q_end == slice.q_end;
    if (const auto both = same_rows ? union_of(*last, slice) : std::nullopt) {
      *last = *both;
    } else {
      slices[count++] = slice;
    }
  }
  slices.resize(count);
  return slices;
}

/// Joins slices, sorted by first row, to earlier ones that end at their first row. Joined slices
/// are queued under their end row if any slice begins there.
class VerticalJoin {
 public:
  explicit VerticalJoin(const std::vector<MaskSlice>& slices) {
    joined_.reserve(slices.size());
    next_.reserve(slices.size());
    for (const MaskSlice& slice : slices) {
      if (begins_.empty() || begins_.back() < slice.q_begin) begins_.push_back(slice.q_begin);
    }
    lists_.resize(begins_.size());
    for (const MaskSlice& slice : slices) add(slice);
  }
  std::vector<MaskSlice> take() { return std::move(joined_); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct List {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  void add(const MaskSlice& slice) {
    while (begins_[row_] < slice.q_begin) ++row_;
    List& above = lists_[row_];
    std::uint32_t before = kNone;
    for (std::uint32_t i = above.first; i != kNone; before = i, i = next_[i]) {
      const auto both = union_of(joined_[i], slice);
      if (!both) continue;
      joined_[i] = *both;
      (before == kNone ? above.first : next_[before]) = next_[i];
      if (above.last == i) above.last = before;
      enqueue(i);
      return;
    }
    joined_.push_back(slice);
    next_.push_back(kNone);
    enqueue(static_cast<std::uint32_t>(joined_.size() - 1));
  }

  /// Appends joined slice `number` to the list of its end row.
  void enqueue(std::uint32_t number) {
    next_[number] = kNone;
    const auto from = begins_.begin() + static_cast<std::ptrdiff_t>(row_);
    const std::int64_t end = joined_[number].q_end;
    const bool is_next = from + 1 != begins_.end() && from[1] >= end;
    const auto at = is_next ? from + 1 : std::lower_bound(from, begins_.end(), end);
    if (at == begins_.end() || *at != end) return;
    List& list = lists_[static_cast<std::size_t>(at - begins_.begin())];
    (list.first == kNone ? list.first : next_[list.last]) = number;
    list.last = number;
  }

  std::vector<MaskSlice> joined_;
  std::vector<std::uint32_t> next_;   ///< per joined slice: its successor in its list
  std::vector<std::int64_t> begins_;  ///< rows at which slices begin, ascending
  std::vector<List> lists_;           ///< per row of begins_: joined slices that end there
  std::size_t row_ = 0;               ///< index into begins_ of the slice being added
};

}  // namespace

std::vector<MaskSlice> joined_slices(std::vector<MaskSlice> slices) {
  return VerticalJoin(join_same_rows(std::move(slices))).take();
}

}  // namespace longca
