#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/block_tile.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/rounding.h"

// Lists of masks of uniform blocks, from counts per tile (block_tile.h).
namespace longca::slice {

/// What the lists of a mask of uniform blocks depend on besides the bits of its blocks.
struct BlockPlan {
  int pack = 1;
  int lists = 1;
  std::int64_t tokens_q = 0;
  int block_sub_tiles = 1;  ///< 64-key sub-tiles per key block
  int words = 0;            ///< per row of bits
  int q_blocks = 0;
  std::vector<std::int32_t> q_block;  ///< the query block of each row group of a list

  int tiles_per_list() const { return static_cast<int>(q_block.size()) / kRowGroups; }
  std::int64_t tiles() const { return std::int64_t{lists} * tiles_per_list(); }
};

/// Whether the lists for `pack` can be made from bits alone: key blocks are of equal size, a
/// multiple of 64, and cover K exactly; each row group lies in one query block; within blocks every
/// cell is allowed.
bool has_block_plan(const Mask& mask, int pack);
BlockPlan block_plan(const Mask& mask, int pack);

/// Query tiles and their order, from the counts of all tiles, list by list. The vectors `partial`
/// and `runs` stay empty: list_block_tile writes what they would hold, from partial_begin and
/// runs_begin on.
struct BlockTiles {
  TileLists lists;
  std::int64_t partial = 0;  ///< total number of partial tiles
  std::int64_t runs = 0;     ///< total number of runs
};
BlockTiles place_block_tiles(const BlockPlan& plan, std::span<const BlockTileCounts> counts,
                             const cost::Platform& platform = cost::default_platform());

/// What the transposed lists of such a mask depend on besides the bits and bounds of its blocks.
/// For masks and packs with a block plan.
struct TransposedBlockPlan {
  int pack = 1;
  int lists = 1;
  std::int64_t tokens_k = 0;
  int block_sub_tiles = 1;
  int words = 0;  ///< per row of bits: a row is a key block, a bit a query block
  bool tells_halves = false;
  /// If tells_halves, in how many query blocks at a time those that see the first half and the
  /// second one come in turn: a divisor of 32; chunks have whole windows.
  int window_blocks = 0;

  int sub_tiles() const { return static_cast<int>(tokens_k / kSubTileKeys); }
  int tiles_per_list() const { return ceil_div(sub_tiles(), 2); }
  std::int64_t tiles() const { return std::int64_t{lists} * tiles_per_list(); }
};
TransposedBlockPlan transposed_block_plan(const Mask& mask, int pack, const BackwardWork& work);

/// Key tiles and their order, from the counts of all tiles, list by list. `segments` stays empty:
/// walk_transposed_block_tile writes what it would hold, from segments_begin on.
struct TransposedBlockTiles {
  TransposedLists lists;
  std::int64_t segments = 0;  ///< total number of segments
};
TransposedBlockTiles place_transposed_block_tiles(const TransposedBlockPlan& plan,
                                                  const BackwardWork& work,
                                                  std::span<const TransposedBlockCounts> counts);

}  // namespace longca::slice
