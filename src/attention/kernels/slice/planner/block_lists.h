#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/block_tile.h"
#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

/// What the lists of a mask of uniform blocks are made of, beside the bits of its blocks.
struct BlockPlan {
  int pack = 1;
  int lists = 1;
  std::int64_t tokens_q = 0;
  int block_sub_tiles = 1;
  int words = 0;  ///< of a row of bits
  int q_blocks = 0;
  std::vector<std::int32_t> q_block;  ///< per row group of a list: its query block

  int tiles_per_list() const { return static_cast<int>(q_block.size()) / kRowGroups; }
  std::int64_t tiles() const { return std::int64_t{lists} * tiles_per_list(); }
};

/// Whether `pack` heads' lists can be made from bits alone: key blocks are of equal size, a
/// multiple of a half, and cover K exactly; each row group lies in one query block; and within
/// blocks every cell is allowed.
bool has_block_plan(const Mask& mask, int pack);
BlockPlan block_plan(const Mask& mask, int pack);

/// Query tiles and their order from the counts of all tiles, list by list, with the one pattern
/// that there is. What `partial` and `runs` would hold is to be written by list_block_tile: from
/// partial_begin and runs_begin on.
struct BlockTiles {
  TileLists lists;
  std::int64_t partial = 0;  ///< entries in all
  std::int64_t runs = 0;
};
BlockTiles place_block_tiles(const BlockPlan& plan, std::span<const BlockTileCounts> counts);

}  // namespace longca::slice
