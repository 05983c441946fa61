#include "mask/overlap.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace longca {
namespace {

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

  /// False if the band meets its new neighbours.
  bool insert(std::uint32_t band, std::int64_t row) {
    const auto at = active_.insert(position(bands_[band].keys_of(row).begin, row), band);
    ends_.push_back(band);
    std::push_heap(ends_.begin(), ends_.end(), [&](auto a, auto b) { return later_end(a, b); });
    if (at != active_.begin() && meet(*(at - 1), band)) return false;
    return at + 1 == active_.end() || !meet(band, *(at + 1));
  }

  /// Removes the bands that end by `row`. False if two that become neighbours meet.
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
    return at == active_.begin() || at == active_.end() || !meet(*(at - 1), *at);
  }

  bool meet(std::uint32_t a, std::uint32_t b) {
    if (bands_[a].intersected(bands_[b]).empty()) return false;
    found_ = {std::min(a, b), std::max(a, b)};
    return true;
  }

  std::span<const Band> bands_;
  std::vector<Range> rows_;
  std::vector<std::uint32_t> active_;  ///< bands of the current row, by key
  std::vector<std::uint32_t> ends_;    ///< the same as a heap, the first to end in front
  std::pair<std::size_t, std::size_t> found_;
};

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> find_overlap(std::span<const Band> bands) {
  return OverlapSweep(bands).run();
}

}  // namespace longca
