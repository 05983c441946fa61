#include "attention/kernels/slice/planner/transposed_block_lists.h"

#include <algorithm>

#include "attention/kernels/slice/planner/work_order.h"
#include "core/error.h"
#include "mask/block_lists.h"

namespace longca::slice {

TransposedBlockPlan transposed_block_plan(const Mask& mask, int pack) {
  const BlockPlan forward = block_plan(mask, pack);
  TransposedBlockPlan plan;
  plan.pack = pack;
  plan.lists = forward.lists;
  plan.tokens_k = mask.k_tokens();
  plan.block_sub_tiles = forward.block_sub_tiles;
  plan.words = static_cast<int>(words_per_row(forward.q_blocks));
  return plan;
}

TransposedBlockTiles place_transposed_block_tiles(const TransposedBlockPlan& plan,
                                                  const BackwardWork& work,
                                                  std::span<const TransposedBlockCounts> counts) {
  LONGCA_CHECK(!work.ordered, "segments made of bits have no ranks");
  TransposedBlockTiles placed;
  TransposedLists& lists = placed.lists;
  lists.pack = plan.pack;
  lists.list_heads = plan.lists;
  lists.of_blocks = true;
  lists.tiles_per_list = plan.tiles_per_list();
  lists.patterns.assign(std::size_t{2} * kTileKeys, 0);
  std::fill_n(lists.patterns.begin() + kFirstSubTile * kTileKeys, kSubTileKeys, ~std::uint64_t{0});
  std::fill_n(lists.patterns.begin() + kSecondSubTile * kTileKeys + kSubTileKeys, kSubTileKeys,
              ~std::uint64_t{0});
  lists.tiles.reserve(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    KeyTile tile;
    const std::int64_t begin = static_cast<std::int64_t>(i) % lists.tiles_per_list * kTileKeys;
    tile.k_begin = static_cast<std::int32_t>(begin);
    tile.k_end = static_cast<std::int32_t>(std::min(begin + kTileKeys, plan.tokens_k));
    tile.segments_begin = static_cast<std::int32_t>(placed.segments);
    tile.segments = counts[i].segments;
    tile.q_tiles = counts[i].q_tiles;
    tile.q_begin = counts[i].q_begin;
    tile.q_end = counts[i].q_end;
    placed.segments += counts[i].segments;
    lists.tiles.push_back(tile);
  }
  LONGCA_CHECK(placed.segments < INT32_MAX, "lists of {} segments: the limit is {}",
               placed.segments, INT32_MAX);
  order_work(work, lists);
  return placed;
}

}  // namespace longca::slice
