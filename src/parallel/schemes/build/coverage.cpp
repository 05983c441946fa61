#include "parallel/schemes/build/coverage.h"

#include <algorithm>

#include "mask/mask_slice.h"

namespace longca {

std::vector<Range> Coverage::gaps(Range whole) const {
  std::vector<Range> gaps;
  std::int64_t next = whole.begin;
  for (const Range covered : rows_) {
    const Range gap = intersect({next, covered.begin}, whole);
    if (!gap.empty()) gaps.push_back(gap);
    next = std::max(next, covered.end);
  }
  if (next < whole.end) gaps.push_back({next, whole.end});
  return gaps;
}

std::vector<Range> Coverage::add(Range rows) {
  std::vector<Range> fresh = gaps(rows);
  rows_.push_back(rows);
  join_ranges(rows_);
  return fresh;
}

}  // namespace longca
