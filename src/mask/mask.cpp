#include "mask/mask.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "mask/mask_data.h"

namespace longca {
namespace {

/// Finds two non-empty bands that share a cell, by O(n log n) comparisons and O(n · bands alive in
/// a row) moves: sweeps over the queries, keeps the bands of the current row ordered by key, and
/// compares neighbours only (M. Shamos and D. Hoey, "Geometric intersection problems", FOCS 1976).
/// Neighbours suffice because the ends of a band move by 0 or 1 key per row, so disjoint bands
/// never change order.
class OverlapSweep {
 public:
  explicit OverlapSweep(std::span<const Band> bands) : bands_(bands) {
    rows_.reserve(bands.size());
    for (const Band& band : bands) rows_.push_back(band.rows());
  }

  std::optional<std::pair<std::size_t, std::size_t>> run() {
    for (const std::uint32_t band : by_first_row()) {
      const std::int64_t row = rows_[band].begin;
      if (!remove_ended(row) || !insert(band, row)) return found_;
    }
    if (!remove_ended(std::numeric_limits<std::int64_t>::max())) return found_;
    return std::nullopt;
  }

 private:
  std::vector<std::uint32_t> by_first_row() const {
    std::vector<std::uint32_t> order(bands_.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto less = [&](std::uint32_t a, std::uint32_t b) {
      return rows_[a].begin < rows_[b].begin;
    };
    if (!std::is_sorted(order.begin(), order.end(), less)) {
      std::sort(order.begin(), order.end(), less);
    }
    return order;
  }

  auto position(std::int64_t key, std::int64_t row) {
    return std::partition_point(active_.begin(), active_.end(), [&](std::uint32_t other) {
      return bands_[other].keys_of(row).begin < key;
    });
  }

  bool later_end(std::uint32_t a, std::uint32_t b) const { return rows_[a].end > rows_[b].end; }

  /// False if the band shares a cell with a new neighbour.
  bool insert(std::uint32_t band, std::int64_t row) {
    const auto at = active_.insert(position(bands_[band].keys_of(row).begin, row), band);
    ends_.push_back(band);
    std::push_heap(ends_.begin(), ends_.end(), [&](auto a, auto b) { return later_end(a, b); });
    if (at != active_.begin() && overlap(*(at - 1), band)) return false;
    return at + 1 == active_.end() || !overlap(band, *(at + 1));
  }

  /// Removes the bands that end by `row`. False if two that become neighbours share a cell.
  bool remove_ended(std::int64_t row) {
    while (!ends_.empty() && rows_[ends_.front()].end <= row) {
      if (!remove_first_ended()) return false;
    }
    return true;
  }

  bool remove_first_ended() {
    std::pop_heap(ends_.begin(), ends_.end(), [&](auto a, auto b) { return later_end(a, b); });
    const std::uint32_t band = ends_.back();
    ends_.pop_back();
    const std::int64_t last_row = rows_[band].end - 1;
    const auto at = active_.erase(position(bands_[band].keys_of(last_row).begin, last_row));
    return at == active_.begin() || at == active_.end() || !overlap(*(at - 1), *at);
  }

  bool overlap(std::uint32_t a, std::uint32_t b) {
    if (bands_[a].intersected(bands_[b]).empty()) return false;
    found_ = {std::min(a, b), std::max(a, b)};
    return true;
  }

  std::span<const Band> bands_;
  std::vector<Range> rows_;
  std::vector<std::uint32_t> active_;  ///< bands of the current row, by key
  std::vector<std::uint32_t> ends_;    ///< the same, as a min-heap by last row
  std::pair<std::size_t, std::size_t> found_;
};

void check_token_count(const char* what, std::int64_t tokens) {
  if (tokens < 0 || tokens > kMaxTokens) {
    throw_input_error("a mask of {} {}: the limits are 0 and {}", tokens, what, kMaxTokens);
  }
}

void check_inside(const std::vector<MaskSlice>& slices, std::int64_t q_tokens,
                  std::int64_t k_tokens) {
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const MaskSlice& s = slices[i];
    if (s.q_begin < 0 || s.q_end > q_tokens || s.k_begin < 0 || s.k_end > k_tokens) {
      throw_input_error("slice {}, {}, reaches outside the mask of {} queries × {} keys", i,
                        to_string(s), q_tokens, k_tokens);
    }
    if (s.q_begin > s.q_end || s.k_begin > s.k_end) {
      throw_input_error("slice {}, {}, has a range that ends before it begins", i, to_string(s));
    }
  }
}

void check_disjoint(const std::vector<MaskSlice>& slices, const std::vector<Band>& bands) {
  const auto overlap = OverlapSweep(bands).run();
  if (!overlap) return;
  const auto [a, b] = *overlap;
  const Band common = bands[a].intersected(bands[b]);
  const std::int64_t row = common.rows().begin;
  throw_input_error("slices {} and {} both allow query {}, key {}", to_string(slices[a]),
                    to_string(slices[b]), row, common.keys_of(row).begin);
}

void sort_slices(std::vector<MaskSlice>& slices) {
  const auto before = [](const MaskSlice& a, const MaskSlice& b) {
    return a.q_begin != b.q_begin ? a.q_begin < b.q_begin : a.k_begin < b.k_begin;
  };
  if (!std::is_sorted(slices.begin(), slices.end(), before)) {
    std::stable_sort(slices.begin(), slices.end(), before);
  }
}

}  // namespace

std::shared_ptr<Mask::Data> Mask::build(std::int64_t q_tokens, std::int64_t k_tokens,
                                        std::vector<MaskSlice> slices) {
  check_token_count("queries", q_tokens);
  check_token_count("keys", k_tokens);
  check_inside(slices, q_tokens, k_tokens);
  std::erase_if(slices, [](const MaskSlice& s) { return Band::of(s).empty(); });
  sort_slices(slices);

  auto data = std::make_shared<Data>();
  data->q_tokens = q_tokens;
  data->k_tokens = k_tokens;
  data->bands.reserve(slices.size());
  for (const MaskSlice& slice : slices) data->bands.push_back(Band::of(slice));
  data->slices = std::move(slices);
  return data;
}

void Mask::Data::measure() {
  if (blocks) {
    areas = block_areas();
    return;
  }
  std::int64_t area = 0;
  for (const Band& band : bands) area += band.area();
  areas = {area};
}

Mask Mask::from_slices(std::int64_t q_tokens, std::int64_t k_tokens,
                       std::vector<MaskSlice> slices) {
  auto data = build(q_tokens, k_tokens, std::move(slices));
  check_disjoint(data->slices, data->bands);
  data->measure();
  return Mask(std::move(data));
}

Mask Mask::from_blocks(std::int64_t q_tokens, std::int64_t k_tokens, std::vector<MaskSlice> slices,
                       BlockLists blocks) {
  auto data = build(q_tokens, k_tokens, std::move(slices));
  check_disjoint(data->slices, data->bands);
  check_block_lists(blocks, q_tokens, k_tokens);
  data->blocks = std::move(blocks);
  data->measure();
  return Mask(std::move(data));
}

std::int64_t Mask::q_tokens() const {
  return data_->q_tokens;
}
std::int64_t Mask::k_tokens() const {
  return data_->k_tokens;
}
std::span<const MaskSlice> Mask::slices() const {
  return data_->slices;
}
const BlockLists* Mask::blocks() const {
  return data_->blocks ? &*data_->blocks : nullptr;
}
int Mask::heads() const {
  return data_->blocks ? data_->blocks->heads : 1;
}

std::int64_t Mask::area(int head) const {
  LONGCA_CHECK(head >= 0 && head < heads(), "head {} of a mask of {}", head, heads());
  return data_->areas[static_cast<std::size_t>(head)];
}

const void* Mask::derived_of(const std::type_info& type,
                             std::shared_ptr<const void> (*make)(const void* context),
                             const void* context) const {
  const std::scoped_lock lock(data_->derived_mutex);
  std::shared_ptr<const void>& entry = data_->derived[type];
  if (!entry) entry = make(context);
  return entry.get();
}

double Mask::mean_area() const {
  const auto& areas = data_->areas;
  return std::accumulate(areas.begin(), areas.end(), 0.0) / static_cast<double>(areas.size());
}

}  // namespace longca
