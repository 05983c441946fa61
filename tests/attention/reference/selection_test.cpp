#include "attention/reference/selection.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "attention/reference/tile_mask.h"
#include "attention/solved.h"
#include "mask/generators.h"

namespace longca {
namespace {

using Mode = Selection::Mode;
using test::square_problem;

constexpr std::int64_t kTokens = 1000;
constexpr double kGflops = 1;

Mask causal(std::int64_t tokens) {
  return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::causal}});
}

Problem gqa_problem() {
  return square_problem(kTokens, 8, 2, 64, DType::bfloat16);
}

Selection select(double seconds, std::uint64_t seed = 1) {
  return select_tiles(gqa_problem(), causal(kTokens), {seconds, kGflops}, seed);
}

/// Cost of the whole problem by the cost model: what a full selection takes.
double whole_cost() {
  double cells = 0;
  for (std::int64_t tile = 0; tile < tile_count(kTokens); ++tile) {
    cells += static_cast<double>(tile + 1) * kTile * kTile;
  }
  return reference_flops(static_cast<std::int64_t>(cells), 64) * 8 / (kGflops * 1e9);
}

TEST(Selection, TakesEverythingWhenTheBudgetAllows) {
  const Selection all = select(whole_cost() * 1.001);
  EXPECT_EQ(all.mode, Mode::everything);
  EXPECT_EQ(all.queries.size(), 8U * 16);
  EXPECT_EQ(all.keys.size(), 2U * 16);
}

TEST(Selection, TakesWholeKvHeadsWithTheirQueryHeadsNext) {
  const Selection half = select(whole_cost() * 0.999);
  EXPECT_EQ(half.mode, Mode::heads);
  ASSERT_EQ(half.keys.size(), 16U);
  ASSERT_EQ(half.queries.size(), 4U * 16);
  for (const auto& item : half.queries) EXPECT_EQ(item.head / 4, half.keys.front().head);
}

TEST(Selection, TakesTilesWhenNoHeadIsAffordable) {
  const Selection tiles = select(whole_cost() * 0.2);
  EXPECT_EQ(tiles.mode, Mode::tiles);
  EXPECT_FALSE(tiles.queries.empty());
  EXPECT_LT(tiles.queries.size(), 8U * 16);
  EXPECT_FALSE(tiles.keys.empty());
  EXPECT_LT(tiles.keys.size(), 2U * 16);
}

TEST(Selection, ATileOfEachKindIsTakenWhateverItCosts) {
  const Selection least = select(1e-9);
  EXPECT_EQ(least.mode, Mode::tiles);
  ASSERT_EQ(least.queries.size(), 1U);
  ASSERT_EQ(least.keys.size(), 1U);
  EXPECT_EQ(least.queries.front().tile, tile_count(kTokens) - 1);  // where odd lengths go wrong
  EXPECT_EQ(least.keys.front().tile, tile_count(kTokens) - 1);
}

TEST(Selection, ReadsTheHeadsOfItsTilesAndTheQueryHeadsOfItsKeys) {
  const Problem problem = gqa_problem();
  const auto of = [&](const Selection& selection) { return heads_of(problem, selection); };
  EXPECT_EQ(of(select(2 * whole_cost())), (CheckedHeads{{{0, 8}}, {{0, 2}}}));
  const Selection one_head = select(0.6 * whole_cost());
  ASSERT_EQ(one_head.mode, Mode::heads);
  const std::int64_t head = one_head.keys.front().head;
  EXPECT_EQ(of(one_head), (CheckedHeads{{{4 * head, 4 * head + 4}}, {{head, head + 1}}}));
  Selection tiles{Mode::tiles, {{1, 3}, {2, 0}}, {{1, 7}}};
  EXPECT_EQ(of(tiles), (CheckedHeads{{{1, 3}, {4, 8}}, {{1, 2}}}));
  EXPECT_EQ(of({}), CheckedHeads{});
}

TEST(Selection, QueryTilesComeWithAllHeadsOfTheGroup) {
  const Selection tiles = select(whole_cost() * 0.2);
  for (const auto& item : tiles.queries) {
    const Selection::Item first{item.head / 4 * 4, item.tile};
    EXPECT_EQ(std::ranges::count(tiles.queries, first), 1);
  }
}

TEST(Selection, DependsOnTheSeedAndOnNothingElse) {
  EXPECT_EQ(select(whole_cost() * 0.2, 7), select(whole_cost() * 0.2, 7));
  EXPECT_NE(select(whole_cost() * 0.2, 7), select(whole_cost() * 0.2, 8));
  std::set<std::int64_t> heads;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    heads.insert(select(whole_cost() * 0.999, seed).keys.front().head);
  }
  EXPECT_EQ(heads.size(), 2U);
}

TEST(Selection, BlockListsAreCountedPerHead) {
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = kTokens;
  spec.heads_q = 8;
  spec.heads_k = 2;
  spec.block = 64;
  spec.density = 0.25;
  const Mask mask = generate_mask(spec).mask;
  const double quarter = whole_cost() * 2 * 0.25;  // of the full mask
  EXPECT_EQ(select_tiles(gqa_problem(), mask, {quarter * 1.2, kGflops}, 1).mode, Mode::everything);
  EXPECT_NE(select_tiles(gqa_problem(), mask, {quarter * 0.8, kGflops}, 1).mode, Mode::everything);
}

TEST(Selection, NoTokensAreAllTokens) {
  const Problem problem = square_problem(0, 4, 2, 64, DType::float32);
  const Selection none = select_tiles(problem, Mask::from_slices(0, 0, {}), {1, kGflops}, 1);
  EXPECT_EQ(none.mode, Mode::everything);
  EXPECT_TRUE(none.queries.empty());
}

TEST(Selection, LongMasksAreSelectedWithoutVisitingEveryTile) {
  const std::int64_t tokens = std::int64_t{768} << 10;
  const Problem problem = square_problem(tokens, 64, 8, 128, DType::bfloat16);
  const Selection tiles = select_tiles(problem, causal(tokens), {10, 20}, 1);
  EXPECT_EQ(tiles.mode, Mode::tiles);
  EXPECT_FALSE(tiles.queries.empty());
}

RC_GTEST_PROP(Selection, NamesEachTileOnceAndInRange, ()) {
  const auto seconds =
      *rc::gen::map(rc::gen::inRange(0, 1200), [](int i) { return whole_cost() * i / 1000.0; });
  const Selection selection = select(seconds, *rc::gen::inRange<std::uint64_t>(0, 100));
  std::set<std::pair<std::int64_t, std::int64_t>> queries, keys;
  for (const auto& item : selection.queries) {
    RC_ASSERT(item.head >= 0 && item.head < 8 && item.tile >= 0 && item.tile < 16);
    RC_ASSERT(queries.insert({item.head, item.tile}).second);
  }
  for (const auto& item : selection.keys) {
    RC_ASSERT(item.head >= 0 && item.head < 2 && item.tile >= 0 && item.tile < 16);
    RC_ASSERT(keys.insert({item.head, item.tile}).second);
  }
}

TEST(Selection, TheMeasuredRateIsARateAndStays) {
  const double gflops = measured_reference_gflops();
  EXPECT_GT(gflops, 0);
  EXPECT_EQ(gflops, measured_reference_gflops());
}

}  // namespace
}  // namespace longca
