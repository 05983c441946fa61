#pragma once

#include <cstdint>
#include <span>

#include "attention/kernels/slice/planner/block_lists.h"
#include "attention/kernels/slice/planner/transposed_block_tile.h"

namespace longca::slice {

/// What the transposed lists of a mask of uniform blocks are made of, beside the bits of its blocks
/// and their bounds. For masks and packs that have a block plan (block_lists.h).
struct TransposedBlockPlan {
  int pack = 1;
  int lists = 1;
  std::int64_t tokens_k = 0;
  int block_sub_tiles = 1;
  int words = 0;  ///< of a row of bits: a key block's

  int sub_tiles() const { return static_cast<int>(tokens_k / kSubTileKeys); }
  int tiles_per_list() const { return (sub_tiles() + 1) / 2; }
  std::int64_t tiles() const { return std::int64_t{lists} * tiles_per_list(); }
};
TransposedBlockPlan transposed_block_plan(const Mask& mask, int pack);

/// Key tiles and their order from the counts of all tiles, list by list, with the two patterns that
/// there are. What `segments` would hold is to be written by walk_transposed_block_tile: from
/// segments_begin on.
struct TransposedBlockTiles {
  TransposedLists lists;
  std::int64_t segments = 0;  ///< in all
};
TransposedBlockTiles place_transposed_block_tiles(const TransposedBlockPlan& plan,
                                                  const BackwardWork& work,
                                                  std::span<const TransposedBlockCounts> counts);

}  // namespace longca::slice
