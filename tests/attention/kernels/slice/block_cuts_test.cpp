#include "attention/kernels/slice/planner/block_cuts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "attention/kernels/slice/random_masks.h"

namespace longca::slice {
namespace {

using Bounds = std::vector<std::int64_t>;

/// Query blocks of these bounds; block i keeps the key blocks kept[i], of 64 keys each.
BlockLists lists_of(Bounds q_bounds, const std::vector<std::vector<std::int32_t>>& kept) {
  BlockLists blocks;
  blocks.q_bounds = std::move(q_bounds);
  blocks.k_bounds = {0, 64, 128, 192, 256};
  blocks.offsets = {0};
  for (const std::vector<std::int32_t>& of_block : kept) {
    blocks.indices.insert(blocks.indices.end(), of_block.begin(), of_block.end());
    blocks.offsets.push_back(std::ssize(blocks.indices));
  }
  return blocks;
}

Bounds cut(const BlockLists& blocks, const TileCosts& costs) {
  return cut_at_blocks(blocks, BlockSide::queries, 128, costs);
}

TEST(SliceBlockCuts, LieBetweenBlocksThatSeeOtherKeys) {
  const BlockLists blocks = lists_of({0, 100, 220, 300}, {{0, 1}, {2, 3}, {0, 1}});
  EXPECT_EQ(cut(blocks, {.start = 1, .token = 1}), (Bounds{0, 100, 220, 300}));
}

TEST(SliceBlockCuts, AreNoneWhereBlocksSeeTheSameKeysOrStartsAreDear) {
  const BlockLists same = lists_of({0, 100, 220, 300}, {{0, 1}, {0, 1}, {0, 1}});
  EXPECT_EQ(cut(same, {.start = 1, .token = 1}), (Bounds{0, 128, 256, 300}));
  const BlockLists others = lists_of({0, 90, 200, 300}, {{0, 1}, {2, 3}, {0, 1}});
  EXPECT_EQ(cut(others, {.start = 1e6, .token = 1}).size(), 4U);
  EXPECT_EQ(cut(others, {.start = 1, .token = 1, .short_share = 10}), (Bounds{0, 128, 256, 300}));
}

/// A tile of two blocks of 64, of which either half sees other keys, costs no more than two tiles
/// only if what one half sees costs half.
TEST(SliceBlockCuts, CountWhatOneHalfSees) {
  const BlockLists blocks = lists_of({0, 64, 128}, {{0, 1}, {2, 3}});
  EXPECT_EQ(cut(blocks, {.start = 1, .token = 1, .half_share = 0.5}), (Bounds{0, 128}));
  // Of the tiles (0, 64) and (64, 128) one half is empty: they see with one half as well.
  EXPECT_EQ(cut(blocks, {.start = 0, .token = 1, .half_share = 0.5}).size(), 2U);
}

/// Token 22 costs less to reach than 16 (70 for 83), but a tile from there sees with both halves
/// what one from 16 sees with its second alone: a path through 22 costs at least 140, this one 134.
TEST(SliceBlockCuts, OfTilesOfOneSizeAreTakenWhereTheyCostLess) {
  BlockLists blocks = lists_of({0, 6, 12, 24, 32}, {{}, {0}, {}, {0}});
  blocks.k_bounds = {0, 64};
  const TileCosts costs = {.start = 19, .token = 1, .half_share = 0.5};
  EXPECT_EQ(cut_at_blocks(blocks, BlockSide::queries, 16, costs), (Bounds{0, 16, 32}));
}

TEST(SliceBlockCuts, OfNoTokens) {
  EXPECT_EQ(cut(lists_of({0}, {}), {.start = 1, .token = 1}), Bounds{0});
}

TileCosts random_costs() {
  return {.start = *rc::gen::inRange(0, 2000) + 1.0,
          .token = *rc::gen::inRange(1, 50) * 1.0,
          .half_share = *rc::gen::element(0.5, 0.75, 1.0)};
}

/// The same lists seen from the keys.
BlockLists transposed(const BlockLists& blocks) {
  BlockLists result;
  result.q_bounds = blocks.k_bounds;
  result.k_bounds = blocks.q_bounds;
  result.heads = blocks.heads;
  result.offsets = {0};
  for (int head = 0; head < blocks.heads; ++head) {
    for (std::int64_t k = 0; k < blocks.k_blocks(); ++k) {
      for (std::int64_t q = 0; q < blocks.q_blocks(); ++q) {
        const auto kept = blocks.kept(head, q);
        if (std::ranges::find(kept, k) != kept.end()) {
          result.indices.push_back(static_cast<std::int32_t>(q));
        }
      }
      result.offsets.push_back(std::ssize(result.indices));
    }
  }
  return result;
}

RC_GTEST_PROP(SliceBlockCuts, AreWholeTilesOrEndWithABlock, ()) {
  const std::int64_t q_tokens = *rc::gen::inRange<std::int64_t>(0, 600);
  const std::int64_t k_tokens = *rc::gen::inRange<std::int64_t>(0, 600);
  const BlockLists blocks = random_block_lists(q_tokens, k_tokens);
  const std::int64_t tile = *rc::gen::element<std::int64_t>(16, 64, 128);
  const TileCosts costs = random_costs();
  const Bounds cuts = cut_at_blocks(blocks, BlockSide::queries, tile, costs);
  RC_ASSERT(cuts.front() == 0);
  RC_ASSERT(cuts.back() == q_tokens);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::int64_t tokens = cuts[i + 1] - cuts[i];
    RC_ASSERT(tokens > 0 && tokens <= tile);
    RC_ASSERT(tokens == tile || std::ranges::binary_search(blocks.q_bounds, cuts[i + 1]));
  }
  RC_ASSERT(cut_at_blocks(transposed(blocks), BlockSide::keys, tile, costs) == cuts);
}

/// What the tiles between `cuts` cost, from the lists alone.
double cost_of(const BlockLists& blocks, const Bounds& cuts, std::int64_t tile,
               const TileCosts& costs) {
  const double tokens = costs.token * static_cast<double>(blocks.k_bounds.back()) /
                        static_cast<double>(blocks.k_blocks());
  double cost = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    cost += costs.start;
    const std::int64_t middle = std::min(cuts[i] + tile / 2, cuts[i + 1]);
    for (int head = 0; head < blocks.heads; ++head) {
      for (std::int64_t k = 0; k < blocks.k_blocks(); ++k) {
        const auto sees = [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t q = begin; q < end; ++q) {
            const auto kept = blocks.kept(head, block_of(blocks.q_bounds, q));
            if (std::ranges::find(kept, k) != kept.end()) return true;
          }
          return false;
        };
        const int halves = sees(cuts[i], middle) + sees(middle, cuts[i + 1]);
        cost += halves == 2 ? tokens : halves == 1 ? tokens * costs.half_share : 0;
      }
    }
  }
  return cost;
}

RC_GTEST_PROP(SliceBlockCuts, CostNoMoreThanTilesOfOneSize, ()) {
  const std::int64_t q_tokens = *rc::gen::inRange<std::int64_t>(1, 400);
  const BlockLists blocks = random_block_lists(q_tokens, *rc::gen::inRange<std::int64_t>(1, 400));
  const std::int64_t tile = *rc::gen::element<std::int64_t>(16, 64, 128);
  const TileCosts costs = random_costs();
  Bounds uniform = {0};
  while (uniform.back() < q_tokens) uniform.push_back(std::min(uniform.back() + tile, q_tokens));
  const Bounds cuts = cut_at_blocks(blocks, BlockSide::queries, tile, costs);
  RC_ASSERT(cost_of(blocks, cuts, tile, costs) <= 1.0001 * cost_of(blocks, uniform, tile, costs));
}

}  // namespace
}  // namespace longca::slice
