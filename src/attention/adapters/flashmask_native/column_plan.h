#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/adapters/flashmask_native/column_tiles.h"
#include "mask/convert.h"

namespace longca::flashmask {

/// The columns as the kernels take them, padded to a multiple of `tile_n` with columns that no row
/// sees.
std::vector<Column> padded_columns(const ColumnIntervals& intervals, std::int64_t tile_n);

/// What a kernel with tiles of `tile_m` query rows × `tile_n` keys needs to know of a mask.
struct TilePlan {
  /// One per key block.
  std::vector<BlockBounds> bounds;
  /// Row blocks and key blocks, those with most tiles to visit first: the order in which work
  /// groups start, so that the long ones do not end the kernel alone.
  std::vector<std::int32_t> row_order;
  std::vector<std::int32_t> column_order;
  /// Tiles to visit, all and of the longest key block.
  std::int64_t tiles = 0;
  std::int64_t most_tiles_of_column = 0;
};

/// O(columns) and a sort of the blocks. `columns` is a multiple of `tile_n` long.
TilePlan plan_tiles(std::span<const Column> columns, std::int64_t q_tokens, std::int64_t tile_m,
                    std::int64_t tile_n);

/// Into how many parts (a divisor of `group_size`) the query heads that read one KV head are split
/// for the backward pass: one work group per part and key block. More parts balance better, few
/// need no sums over parts. The least number for which no work group is longer than half of what
/// each of the `slots` has to do, or all heads.
int head_parts(const TilePlan& plan, int group_size, int heads_k, int slots);

}  // namespace longca::flashmask
