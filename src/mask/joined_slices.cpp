#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "mask/band.h"

namespace longca {
namespace {

/// Where the cells of a slice that has some lie, and how many they are.
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
    const Range seeing = band.rows();
    return {
        seeing, {band.keys_of(seeing.begin).begin, band.keys_of(seeing.end - 1).end}, band.area()};
  }

  /// Cells of a slice of `type` in each of whose rows there is one; −1 if some must be without.
  /// What Band::area says of it.
  static std::int64_t area_of(MaskSliceType type, std::int64_t rows, std::int64_t keys) {
    if (type == MaskSliceType::full) return rows * keys;
    if (rows > keys) return -1;
    if (type == MaskSliceType::bi_causal) return rows * (keys - rows + 1);
    return rows * keys - rows * (rows - 1) / 2;
  }
};

/// The one slice that allows what two disjoint slices allow, if there is one: it has their bounding
/// box, contains both and has no other cell.
std::optional<MaskSlice> union_of(const MaskSlice& first, const MaskSlice& second) {
  if (first.type == MaskSliceType::full && second.type == MaskSliceType::full) {
    const bool same_keys = first.k_begin == second.k_begin && first.k_end == second.k_end;
    const bool apart = first.q_end <= second.q_begin || second.q_end <= first.q_begin;
    // Then rows of one of them see the same keys, and those of no other slice than a full one do.
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

std::vector<MaskSlice> joined_sideways(std::vector<MaskSlice> slices) {
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

/// Joins slices that come by first row to those that end where they begin. These wait in a list
/// per row at which a slice begins: other ends need not be remembered.
class DownwardJoin {
 public:
  explicit DownwardJoin(const std::vector<MaskSlice>& slices) {
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
      wait(i);
      return;
    }
    joined_.push_back(slice);
    next_.push_back(kNone);
    wait(static_cast<std::uint32_t>(joined_.size() - 1));
  }

  /// At the end of the list of its end.
  void wait(std::uint32_t number) {
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
  std::vector<std::uint32_t> next_;   ///< per joined slice: the one behind it in its list
  std::vector<std::int64_t> begins_;  ///< rows at which slices begin, ascending
  std::vector<List> lists_;           ///< per such row
  std::size_t row_ = 0;               ///< of begins_: that of the slice that comes
};

}  // namespace

std::vector<MaskSlice> joined_slices(std::vector<MaskSlice> slices) {
  return DownwardJoin(joined_sideways(std::move(slices))).take();
}

}  // namespace longca
