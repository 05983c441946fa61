#include "parallel/schemes/build/least_bytes.h"

#include <algorithm>

#include "mask/mask_slice.h"

namespace longca {
namespace {

bool sees_none(const Mask& mask, std::span<const Range> rows, Range keys) {
  for (const Range range : rows) {
    for (int head = 0; head < mask.heads(); ++head) {
      if (mask.area_in(head, range, keys) > 0) return false;
    }
  }
  return true;
}

/// Whether the first or last query of some range sees all of `keys`. If no diagonal ends inside
/// them, some query sees them all if and only if one of these does.
bool sees_all(const Mask& mask, std::span<const Range> rows, Range keys) {
  for (const Range range : rows) {
    for (int head = 0; head < mask.heads(); ++head) {
      for (const std::int64_t row : {range.begin, range.end - 1}) {
        if (mask.area_in(head, {row, row + 1}, keys) == keys.size()) return true;
      }
    }
  }
  return keys.size() == 1;  // and that one is seen
}

std::int64_t count(const Mask& mask, std::span<const Range> rows, Range keys) {
  if (keys.empty() || sees_none(mask, rows, keys)) return 0;
  if (sees_all(mask, rows, keys)) return keys.size();
  const std::int64_t middle = keys.begin + keys.size() / 2;
  return count(mask, rows, {keys.begin, middle}) + count(mask, rows, {middle, keys.end});
}

}  // namespace

std::int64_t count_seen_keys(const Mask& mask, std::span<const Range> rows,
                             std::span<const Range> keys) {
  std::int64_t seen = 0;
  for (const Range range : keys) seen += count(mask, rows, range);
  return seen;
}

std::int64_t least_bytes(const ParallelProblem& problem, const Sharding& sharding, int rank,
                         bool backward) {
  const Problem& p = problem.problem;
  const std::vector<Range> own = sharding.ranges(rank);
  const Range all[] = {{0, p.tokens_k}};
  const std::int64_t foreign =
      count_seen_keys(problem.mask, own, all) - count_seen_keys(problem.mask, own, own);
  const std::int64_t per_element = size_of(p.dtype) + (backward ? 4 : 0);
  return foreign * 2 * p.heads_k * p.head_dim * per_element;
}

}  // namespace longca
