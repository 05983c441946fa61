#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Chunks of a sequence dealt to positions.
struct BalancedDeal {
  std::int64_t chunk = 1;                  ///< tokens of each; the last may be shorter
  std::vector<std::vector<Range>> ranges;  ///< per position: ascending, not touching
};

/// MagiAttention's dispatch (Z. Zheng et al., "MagiAttention", 2025): the queries are cut into
/// chunks of one length, every position gets the same number of them (±1), and the largest area of
/// a position is made small: longest chunk first to the least loaded position, then swaps. Swaps
/// that put neighbouring chunks together follow where they do not make the largest area larger (or
/// keep it within half a per cent of the mean): neighbours read the same keys.
///
/// `chunk` 0: the longest of total / (positions · 1, 2, 4, …) that keeps the largest area within
/// 2 % of the mean, else the length that comes nearest.
BalancedDeal deal_balanced(const Mask& mask, int positions, std::int64_t chunk);

}  // namespace longca
