#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cost/platform.h"

namespace longca::mma {

/// The number of parts (a divisor of the group size) into which the query heads of a KV head are
/// split in a backward pass, with one CTA per (part, key tile): the smallest above 1 whose last CTA
/// ends within min_parts_gain of the earliest. With 1 part, heads drift apart and lose what they
/// share in L2.
///
/// `end_of(parts)`: when the last CTA ends, or nothing if there are so many CTAs that this split
/// and finer ones are balanced without a look at the schedule.
template <typename EndOf>
int choose_head_parts(int group_size, const cost::MmaBackwardTiles& rates, EndOf end_of) {
  if (group_size == 1) return 1;
  std::vector<std::pair<int, std::int64_t>> splits;
  std::int64_t earliest = INT64_MAX;
  for (int parts = 2; parts <= group_size; ++parts) {
    if (group_size % parts != 0) continue;
    const std::optional<std::int64_t> end = end_of(parts);
    if (!end && splits.empty()) return parts;
    if (!end) break;
    splits.emplace_back(parts, *end);
    earliest = std::min(earliest, *end);
  }
  const double enough = rates.min_parts_gain * static_cast<double>(earliest);
  const auto good = std::ranges::find_if(
      splits, [&](const auto& split) { return static_cast<double>(split.second) <= enough; });
  return good->first;
}

}  // namespace longca::mma
