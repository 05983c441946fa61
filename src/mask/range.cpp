#include "mask/range.h"

#include <bit>
#include <limits>
#include <numeric>

namespace longca {

void join_ranges(std::vector<Range>& ranges) {
  std::erase_if(ranges, [](Range range) { return range.empty(); });
  const auto before = [](Range a, Range b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before)) {
    std::sort(ranges.begin(), ranges.end(), before);
  }
  std::size_t count = 0;
  for (const Range range : ranges) {
    if (count > 0 && range.begin <= ranges[count - 1].end) {
      ranges[count - 1].end = std::max(ranges[count - 1].end, range.end);
    } else {
      ranges[count++] = range;
    }
  }
  ranges.resize(count);
}

std::vector<Range> outside(std::span<const Range> ranges, std::int64_t tokens) {
  std::vector<Range> gaps;
  std::int64_t next = 0;
  for (const Range range : ranges) {
    if (range.begin > next) gaps.push_back({next, range.begin});
    next = range.end;
  }
  if (next < tokens) gaps.push_back({next, tokens});
  return gaps;
}

RangeIndex::RangeIndex(const std::vector<Range>& ranges)
    : leaves_(std::bit_ceil(std::max<std::size_t>(ranges.size(), 1))),
      order_(ranges.size()),
      max_end_(2 * leaves_, std::numeric_limits<std::int64_t>::min()) {
  std::iota(order_.begin(), order_.end(), 0U);
  const auto by_begin = [&](std::uint32_t a, std::uint32_t b) {
    return ranges[a].begin < ranges[b].begin;
  };
  if (!std::is_sorted(order_.begin(), order_.end(), by_begin)) {
    std::stable_sort(order_.begin(), order_.end(), by_begin);
  }
  begins_.reserve(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    begins_.push_back(ranges[order_[i]].begin);
    max_end_[leaves_ + i] = ranges[order_[i]].end;
  }
  for (std::size_t i = leaves_; i-- > 1;) {
    max_end_[i] = std::max(max_end_[2 * i], max_end_[2 * i + 1]);
  }
}

}  // namespace longca
