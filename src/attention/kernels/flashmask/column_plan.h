#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/flashmask/column_tiles.h"
#include "mask/convert.h"

namespace longca::flashmask {

/// The columns for the kernels, padded to a multiple of `tile_n` with columns that no row sees.
std::vector<Column> padded_columns(const ColumnIntervals& intervals, std::int64_t tile_n);

/// A mask for a kernel with tiles of `tile_m` query rows × `tile_n` keys.
struct TilePlan {
  /// One per key block.
  std::vector<BlockBounds> bounds;
  /// Row blocks and key blocks, longest first: the order in which CTAs start, so that long ones do
  /// not end the kernel alone.
  std::vector<std::int32_t> row_order;
  std::vector<std::int32_t> column_order;
  /// Tiles to visit of each key block, in column_order.
  std::vector<std::int64_t> column_tiles;
};

/// O(columns) and a sort of the blocks. `columns` is a multiple of `tile_n` long.
TilePlan plan_tiles(std::span<const Column> columns, std::int64_t q_tokens, std::int64_t tile_m,
                    std::int64_t tile_n);

/// The heads of a backward pass and where it runs.
struct BackwardWork {
  int group_size = 1;  ///< query heads that read one KV head
  int heads_k = 1;
  int heads_in_cache = 1;   ///< query heads whose rows fit in L2 together
  int concurrent_ctas = 1;  ///< CTAs that run at once

  /// KV heads whose key blocks are interleaved, with `parts` query heads of each in flight.
  int section_heads(int parts) const { return std::clamp(heads_in_cache / parts, 1, heads_k); }
};

/// Number of parts (a divisor of the group size) into which the query heads of a KV head are split,
/// one CTA per part and key block. More parts balance better, but each costs its start and its
/// sums; fewer keep fewer heads in L2. The smallest number above 1 (a CTA that runs through all
/// heads of a group drifts out of step with the others, and L2 loses what they share) whose
/// simulated schedule is within 3 % of the shortest. O(CTAs).
int head_parts(const TilePlan& plan, const BackwardWork& work);

}  // namespace longca::flashmask
