#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace longca {

/// Maximum number of queries or keys of a mask: areas stay exact in 64 bits and tile indices in 32.
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30;

/// A half-open range [begin, end) of token indices.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const Range&) const = default;
};

/// Their common tokens; ends before it begins if they are disjoint.
inline Range intersect(Range a, Range b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// Sorts by begin, joins ranges that touch or overlap, drops empty ones.
void join_ranges(std::vector<Range>& ranges);

/// [0, tokens) without the ascending, disjoint `ranges`; ascending, not touching.
std::vector<Range> outside(std::span<const Range> ranges, std::int64_t tokens);

/// The sum of the ranges' sizes; tokens of several ranges count several times.
inline std::int64_t total_size(std::span<const Range> ranges) {
  std::int64_t sum = 0;
  for (const Range range : ranges) sum += range.size();
  return sum;
}

/// Finds which of n fixed ranges overlap a given one in O((1 + found) · log n), O(n) memory: the
/// ranges sorted by begin, below a binary tree of the maximum end.
class RangeIndex {
 public:
  RangeIndex() = default;
  explicit RangeIndex(const std::vector<Range>& ranges);

  /// Calls visit(i) for the index i of every range that shares a token with `range`, by begin.
  template <typename Visit>
  void for_each_overlapping(Range range, Visit&& visit) const {
    if (range.empty()) return;
    const auto last = std::lower_bound(begins_.begin(), begins_.end(), range.end);
    const auto candidates = static_cast<std::size_t>(last - begins_.begin());
    if (candidates > 0) descend(1, 0, leaves_, candidates, range.begin, visit);
  }

 private:
  /// The leaves of the subtree at `node` are [first, first + leaves) of the sorted ranges.
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
