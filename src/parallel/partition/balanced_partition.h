#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Chunks of a sequence assigned to CP ranks.
struct BalancedPartition {
  std::int64_t chunk = 1;                  ///< tokens of each; the last may be shorter
  std::vector<std::vector<Range>> ranges;  ///< per CP rank: ascending, not touching
};

/// MagiAttention's dispatch (Z. Tao, Y. Huang, "MagiAttention", 2025): the queries are cut into
/// chunks of one length, every CP rank gets the same number of them (±1), and the largest area of
/// a CP rank is lowered: the chunk of largest area goes to the least loaded CP rank first, then
/// chunks are swapped. Further swaps bring neighbouring chunks together, which read the same keys,
/// where the largest area does not grow or stays within half a per cent of the mean.
///
/// `chunk`: tokens per chunk; 0: the longest of tokens / (CP ranks · 1, 2, 4, …) that keeps the
/// largest area within 2 % of the mean, else the length that comes nearest.
BalancedPartition partition_balanced(const Mask& mask, int cp_ranks, std::int64_t chunk);

}  // namespace longca
