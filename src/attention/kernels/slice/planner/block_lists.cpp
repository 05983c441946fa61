#include "attention/kernels/slice/planner/block_lists.h"

#include <algorithm>
#include <utility>

#include "attention/kernels/slice/planner/work_order.h"
#include "core/error.h"
#include "mask/block_lists.h"
#include "mask/mask_slice.h"

namespace longca::slice {
namespace {

/// The size of the blocks, if all are equal; else 0.
std::int64_t uniform_size(const std::vector<std::int64_t>& bounds) {
  if (bounds.size() < 2) return 0;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    if (bounds[i] - bounds[i - 1] != bounds[1]) return 0;
  }
  return bounds[1];
}

bool allows_all(std::span<const MaskSlice> slices, std::int64_t cells) {
  return slices.size() == 1 && slices.front().area() == cells;
}

}  // namespace

bool has_block_plan(const Mask& mask, int pack) {
  if (mask.blocks() == nullptr) return false;
  const std::int64_t size = uniform_size(mask.blocks()->k_bounds);
  const std::vector<std::int64_t>& bounds = mask.blocks()->q_bounds;
  const auto between_groups = [&](std::int64_t bound) {
    return bound % (kGroupRows / pack) == 0 || bound == mask.q_tokens();
  };
  return size > 0 && size % kSubTileKeys == 0 && std::ranges::all_of(bounds, between_groups) &&
         allows_all(mask.slices(), mask.q_tokens() * mask.k_tokens());
}

BlockPlan block_plan(const Mask& mask, int pack) {
  LONGCA_CHECK(has_block_plan(mask, pack), "a mask whose blocks and tiles do not match");
  const BlockLists& blocks = *mask.blocks();
  BlockPlan plan;
  plan.pack = pack;
  plan.lists = blocks.heads;
  plan.tokens_q = mask.q_tokens();
  plan.block_sub_tiles = static_cast<int>(uniform_size(blocks.k_bounds) / kSubTileKeys);
  plan.words = static_cast<int>(words_per_row(blocks.k_blocks()));
  plan.q_blocks = static_cast<int>(blocks.q_blocks());
  std::int32_t block = 0;
  const int step = kGroupRows / pack;
  for (std::int64_t token = 0; token < mask.q_tokens(); token += step) {
    while (blocks.q_bounds[static_cast<std::size_t>(block) + 1] <= token) ++block;
    plan.q_block.push_back(block);
  }
  // A row group without tokens shares the block of the other one of its tile.
  if (plan.q_block.size() % kRowGroups != 0) plan.q_block.push_back(block);
  return plan;
}

BlockTiles place_block_tiles(const BlockPlan& plan, std::span<const BlockTileCounts> counts,
                             const cost::Platform& platform) {
  BlockTiles placed;
  TileLists& lists = placed.lists;
  lists.tiling.pack = plan.pack;
  lists.list_heads = plan.lists;
  lists.tiles_per_list = plan.tiles_per_list();
  lists.patterns.assign(static_cast<std::size_t>(lists.tiling.group_tokens()),
                        {0, kSubTileKeys, 0, 0});
  lists.tiles.reserve(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    QueryTile tile{};
    const std::int64_t begin =
        static_cast<std::int64_t>(i) % lists.tiles_per_list * lists.tiling.tile_tokens();
    tile.row_begin = static_cast<std::int32_t>(begin);
    tile.row_end =
        static_cast<std::int32_t>(std::min(begin + lists.tiling.tile_tokens(), plan.tokens_q));
    tile.partial_begin = static_cast<std::int32_t>(placed.partial);
    tile.partial_count = counts[i].partial;
    tile.runs_begin = static_cast<std::int32_t>(placed.runs);
    tile.full_tiles = counts[i].full_tiles;
    const TileCounts tiles{.full = counts[i].full_tiles,
                           .narrow = counts[i].narrow_tiles,
                           .in_turn = counts[i].pairs[0] + counts[i].pairs[1]};
    tile.cost = saturated(tiles.cycles(platform.slice.forward));
    lists.in_turn = lists.in_turn || tiles.in_turn > 0;
    placed.partial += counts[i].partial;
    placed.runs += counts[i].runs;
    lists.tiles.push_back(tile);
  }
  LONGCA_CHECK(placed.partial < INT32_MAX && placed.runs < INT32_MAX,
               "lists of {} tiles and {} runs: the limit is {}", placed.partial, placed.runs,
               INT32_MAX);
  order_tiles(lists);
  return placed;
}

namespace {

/// TransposedBlockPlan::window_blocks: 1, so that blocks stay in order, where they are not equal.
int window_blocks(const Mask& mask, int pack, const BackwardWork& work) {
  const std::int64_t size = uniform_size(mask.blocks()->q_bounds);
  const std::int64_t tile_tokens = kBackwardRows / pack;
  if (size == 0 || size % tile_tokens != 0) return 1;
  int window = 32;
  while (window > 1 && window_tiles(work, pack) % (window * (size / tile_tokens)) != 0) window /= 2;
  return window;
}

}  // namespace

TransposedBlockPlan transposed_block_plan(const Mask& mask, int pack, const BackwardWork& work) {
  const BlockPlan forward = block_plan(mask, pack);
  TransposedBlockPlan plan;
  plan.pack = pack;
  plan.lists = forward.lists;
  plan.tokens_k = mask.k_tokens();
  plan.block_sub_tiles = forward.block_sub_tiles;
  plan.words = static_cast<int>(words_per_row(forward.q_blocks));
  // Else no key tile has two blocks.
  plan.tells_halves = work.tells_halves && plan.block_sub_tiles % 2 != 0;
  if (plan.tells_halves) plan.window_blocks = window_blocks(mask, pack, work);
  return plan;
}

TransposedBlockTiles place_transposed_block_tiles(const TransposedBlockPlan& plan,
                                                  const BackwardWork& work,
                                                  std::span<const TransposedBlockCounts> counts) {
  LONGCA_CHECK(!work.ordered, "segments made of bits have no prior additions");
  TransposedBlockTiles placed;
  TransposedLists& lists = placed.lists;
  lists.pack = plan.pack;
  lists.list_heads = plan.lists;
  lists.of_blocks = true;
  lists.tells_halves = plan.tells_halves;
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
