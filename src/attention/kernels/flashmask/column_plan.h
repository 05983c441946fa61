#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/flashmask/column_tiles.h"
#include "cost/platform.h"
#include "mask/convert.h"

namespace longca::flashmask {

/// The columns in the kernels' form, padded to a multiple of `tile_n` with fully masked columns.
std::vector<Column> padded_columns(const ColumnIntervals& intervals, std::int64_t tile_n);

/// The mask of one head for a kernel with tiles of `tile_m` query rows × `tile_n` keys.
struct TilePlan {
  /// One per key block.
  std::vector<BlockBounds> bounds;
  /// Row blocks and key blocks by descending number of tiles to visit: CTAs launch longest first,
  /// for balance.
  std::vector<std::int32_t> row_order;
  std::vector<std::int32_t> column_order;
  /// Number of tiles to visit per key block, in column_order.
  std::vector<std::int64_t> column_tiles;
};

/// The number of columns must be a multiple of `tile_n`. O(columns + blocks · log blocks).
TilePlan plan_tiles(std::span<const Column> columns, std::int64_t q_tokens, std::int64_t tile_m,
                    std::int64_t tile_n);

/// The heads of a backward pass and the GPU's capacity.
struct BackwardWork {
  const cost::Platform& platform = cost::default_platform();
  int group_size = 1;  ///< query heads per KV head
  int heads_k = 1;
  int heads_in_cache = 1;   ///< query heads whose rows fit in L2 together
  int concurrent_ctas = 1;  ///< CTAs that run at the same time

  /// KV heads whose key blocks are interleaved, so that the `parts` active query heads of each fit
  /// in L2.
  int section_heads(int parts) const { return std::clamp(heads_in_cache / parts, 1, heads_k); }
};

/// Into how many parts the query heads of a KV head are split (mma::choose_head_parts). More parts
/// balance better but add overhead per CTA; fewer parts need fewer heads in L2. O(CTAs).
int head_parts(const TilePlan& plan, const BackwardWork& work);

}  // namespace longca::flashmask
