#include "attention/kernels/slice/planner/block_lists.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <span>

#include "attention/kernels/slice/visits.h"
#include "mask/block_draw.h"
#include "mask/block_lists.h"
#include "mask/generators.h"
#include "support/golden_digests.h"
#include "support/list_digest.h"

namespace longca::slice {
namespace {

/// The lists as the GPU makes them, by the same code.
TileLists lists_from_bits(const Mask& mask, int pack) {
  const BlockPlan plan = block_plan(mask, pack);
  const std::vector<std::uint32_t> bits = block_bits(*mask.blocks());
  const auto tile_of = [&](std::int64_t i) {
    const std::int64_t first = i / plan.tiles_per_list() * plan.q_blocks;
    const auto group = static_cast<std::size_t>(i % plan.tiles_per_list() * kRowGroups);
    const auto row = [&](std::size_t g) { return &bits[(first + plan.q_block[g]) * plan.words]; };
    return BlockTile{{row(group), row(group + 1)}, plan.words, plan.block_sub_tiles};
  };
  std::vector<BlockTileCounts> counts;
  for (std::int64_t i = 0; i < plan.tiles(); ++i) counts.push_back(count_block_tile(tile_of(i)));
  BlockTiles placed = place_block_tiles(plan, counts);
  placed.lists.partial.resize(static_cast<std::size_t>(placed.partial));
  placed.lists.runs.resize(static_cast<std::size_t>(placed.runs));
  for (std::int64_t i = 0; i < plan.tiles(); ++i) {
    const QueryTile& tile = placed.lists.tiles[static_cast<std::size_t>(i)];
    list_block_tile(tile_of(i), counts[static_cast<std::size_t>(i)],
                    placed.lists.partial.data() + tile.partial_begin,
                    placed.lists.runs.data() + tile.runs_begin);
  }
  return placed.lists;
}

/// Blocks of 64 to 192 tokens.
Mask arbitrary_mask() {
  const auto block = *rc::gen::element<std::int64_t>(64, 128, 192);
  const std::int64_t q_tokens = *rc::gen::inRange<std::int64_t>(0, 400);
  const std::int64_t k_tokens = block * *rc::gen::inRange<std::int64_t>(1, 9);
  return Mask::from_blocks(
      q_tokens, k_tokens, {{0, q_tokens, 0, k_tokens, MaskSliceType::full}},
      draw_blocks({.q_bounds = uniform_bounds(q_tokens, *rc::gen::element<std::int64_t>(64, 128)),
                   .k_bounds = uniform_bounds(k_tokens, block),
                   .heads = *rc::gen::inRange(1, 4),
                   .density = *rc::gen::element(0.2, 0.5, 0.9, 1.0)},
                  *rc::gen::inRange<std::uint64_t>(0, 1000)));
}

RC_GTEST_PROP(SliceBlockLists, VisitTheSameCells, ()) {
  const Mask mask = arbitrary_mask();
  const int pack = *rc::gen::element(1, 2, 4, 8);
  RC_PRE(has_block_plan(mask, pack));
  const TileLists lists = lists_from_bits(mask, pack);
  RC_ASSERT(lists.order.size() == lists.tiles.size());
  for (int list = 0; list < mask.heads(); ++list) {
    const Visits visits(lists, list, mask.q_tokens(), mask.k_tokens());
    RC_ASSERT(visits.faults() == 0);
    RC_ASSERT(visits.cells() == mask.dense(list));
  }
}

/// Where both row groups see tiles alone, no two of one group follow each other before the other
/// one's are over.
RC_GTEST_PROP(SliceBlockLists, TakeRowGroupsInTurn, ()) {
  const Mask mask = arbitrary_mask();
  RC_PRE(has_block_plan(mask, 1));
  const TileLists lists = lists_from_bits(mask, 1);
  bool any = false;
  for (const QueryTile& tile : lists.tiles) {
    const auto partial = std::span(lists.partial)
                             .subspan(static_cast<std::size_t>(tile.partial_begin),
                                      static_cast<std::size_t>(tile.partial_count));
    std::vector<int> groups;  // of tiles that are not narrow
    for (const PartialTile& part : partial) {
      if (part.k_begin[1] == kAbsent) continue;
      RC_ASSERT((part.pattern[0] == kFull) != (part.pattern[1] == kFull));
      groups.push_back(part.pattern[0] == kFull ? 0 : 1);
    }
    any = any || !groups.empty();
    const std::ptrdiff_t turns =
        std::min(std::ranges::count(groups, 0), std::ranges::count(groups, 1));
    for (std::ptrdiff_t i = 0; i < 2 * turns; ++i) {
      RC_ASSERT(groups[static_cast<std::size_t>(i)] == i % 2);
    }
  }
  RC_ASSERT(lists.in_turn == any);
}

TEST(SliceBlockLists, AreMadeOnlyWhereBlocksAndTilesMatch) {
  const auto with = [](std::int64_t tokens, std::int64_t block, MaskSliceType type) {
    const auto bounds = uniform_bounds(tokens, block);
    return Mask::from_blocks(tokens, tokens, {{0, tokens, 0, tokens, type}},
                             draw_blocks({.q_bounds = bounds, .k_bounds = bounds}, 1));
  };
  EXPECT_TRUE(has_block_plan(with(512, 64, MaskSliceType::full), 1));
  EXPECT_TRUE(has_block_plan(with(512, 128, MaskSliceType::full), 8));
  EXPECT_FALSE(has_block_plan(with(512, 64, MaskSliceType::causal), 1));
  EXPECT_FALSE(has_block_plan(with(512, 32, MaskSliceType::full), 8));
  EXPECT_FALSE(has_block_plan(with(500, 64, MaskSliceType::full), 1));
  EXPECT_FALSE(has_block_plan(Mask::from_slices(64, 64, {{0, 64, 0, 64, MaskSliceType::full}}), 1));
}

TEST(SliceBlockLists, AreThoseOfTheGoldenFile) {
  constexpr int kPacks[] = {1, 2, 4, 8};
  std::vector<testing::GoldenCase> cases;
  for (const std::int64_t tokens : {1024, 4096, 8192}) {
    for (const std::int64_t block : {64, 128, 256}) {
      for (const double density : {0.1, 0.5}) {
        MaskSpec spec;
        spec.name = "block_sparse";
        spec.tokens = tokens;
        spec.heads_q = 16;
        spec.heads_k = 2;
        spec.block = block;
        spec.density = density;
        const Mask mask = generate_mask(spec).mask;
        testing::GoldenCase golden{
            fmt::format("{} tokens, blocks of {}, density {}", tokens, block, density), {}};
        for (const int pack : kPacks) {
          testing::Digest out;
          const bool possible = has_block_plan(mask, pack);
          if (possible) digest(out, lists_from_bits(mask, pack));
          golden.digests.push_back(possible ? out.value() : 0);
        }
        cases.push_back(std::move(golden));
      }
    }
  }
  testing::expect_golden_digests("block_lists.txt", {"pack_1", "pack_2", "pack_4", "pack_8"},
                                 cases);
}

}  // namespace
}  // namespace longca::slice
