#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// Finds which of n fixed ranges overlap a given one in O(log n + found · log n), O(n) memory:
/// ranges sorted by begin, under a tree of the largest end.
class RangeIndex {
 public:
  RangeIndex() = default;
  explicit RangeIndex(const std::vector<Range>& ranges);

  /// Calls visit(i) for the number i of every range that shares a token with `range`, by begin.
  template <typename Visit>
  void for_each_overlapping(Range range, Visit&& visit) const {
    if (range.empty()) return;
    const auto last = std::lower_bound(begins_.begin(), begins_.end(), range.end);
    const auto candidates = static_cast<std::size_t>(last - begins_.begin());
    if (candidates > 0) descend(1, 0, leaves_, candidates, range.begin, visit);
  }

 private:
  /// Leaves of the subtree at `node` are sorted positions [first, first + leaves).
  template <typename Visit>
  void descend(std::size_t node, std::size_t first, std::size_t leaves, std::size_t candidates,
               std::int64_t begin, Visit& visit) const {
    if (first >= candidates || max_end_[node] <= begin) return;
    if (leaves == 1) {
      visit(order_[first]);
      return;
    }
    descend(2 * node, first, leaves / 2, candidates, begin, visit);
    descend(2 * node + 1, first + leaves / 2, leaves / 2, candidates, begin, visit);
  }

  std::size_t leaves_ = 0;  ///< a power of two
  std::vector<std::int64_t> begins_;
  std::vector<std::uint32_t> order_;
  std::vector<std::int64_t> max_end_;  ///< node i has the children 2 i and 2 i + 1; the root is 1
};

}  // namespace longca
