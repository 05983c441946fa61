#include "attention/reference/drawn_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"

namespace longca {
namespace {

Problem problem_of(std::int64_t tokens, int heads_q = 64, int heads_k = 8) {
  return test::square_problem(tokens, heads_q, heads_k, 128, DType::bfloat16);
}

/// A budget for `share` of one KV head.
VerifyBudget budget_of(const Problem& problem, const Mask& mask, double share) {
  VerifyBudget budget;
  budget.seconds *= share * estimated_seconds(problem, mask, {}) / device_seconds(budget);
  return budget;
}

TEST(DrawnTiles, AreAllWhereAHeadIsAffordable) {
  const Problem problem = problem_of(32768);
  const Mask mask = test::small_mask("full", 32768);
  const DrawnTiles drawn = draw_tiles(problem, mask, budget_of(problem, mask, 1.01), 3);
  EXPECT_TRUE(drawn.whole);
  EXPECT_EQ(drawn.heads_k.size(), 1U);
  EXPECT_EQ(drawn.queries.size(), 512U);
  EXPECT_EQ(drawn.keys.size(), 512U);
}

TEST(DrawnTiles, AreTheShareOfTheirHeadThatTheBudgetTakes) {
  const Problem problem = problem_of(131072);
  const Mask mask = test::small_mask("full", 131072);
  const DrawnTiles drawn = draw_tiles(problem, mask, budget_of(problem, mask, 0.4), 3);
  EXPECT_FALSE(drawn.whole);
  EXPECT_EQ(drawn.heads_k.size(), 1U);
  EXPECT_NEAR(static_cast<double>(drawn.queries.size()), 0.4 * 2048, 2);
  EXPECT_NEAR(static_cast<double>(drawn.keys.size()), 0.1 * 2048, 2);
}

TEST(DrawnTiles, AreDistinctAscendingDrawnFromTheSeedAndHaveTheLast) {
  const Problem problem = problem_of(65535);
  const Mask mask = test::small_mask("causal", 65535);
  std::set<std::vector<std::int32_t>> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DrawnTiles drawn = draw_tiles(problem, mask, {1e-9, 0}, seed);
    for (const auto* tiles : {&drawn.queries, &drawn.keys}) {
      EXPECT_EQ(std::ssize(*tiles), kMinTiles);
      EXPECT_TRUE(std::ranges::is_sorted(*tiles));
      EXPECT_EQ(std::ranges::adjacent_find(*tiles), tiles->end());
      EXPECT_GE(tiles->front(), 0);
      EXPECT_EQ(tiles->back(), 1023);
    }
    EXPECT_EQ(draw_tiles(problem, mask, {1e-9, 0}, seed).queries, drawn.queries);
    all.insert(drawn.queries);
  }
  EXPECT_EQ(all.size(), 20U);
}

TEST(DrawnTiles, AreAllOfAFew) {
  for (const std::int64_t tokens : {1, 100, 4096}) {
    SCOPED_TRACE(tokens);
    const Problem problem = problem_of(tokens);
    const DrawnTiles drawn = draw_tiles(problem, test::small_mask("full", tokens), {1e-9, 0}, 1);
    EXPECT_TRUE(drawn.whole);
    EXPECT_EQ(std::ssize(drawn.queries), tile_count(tokens));
  }
}

TEST(DrawnTiles, AreListedByHeadAndTellWhetherTheyAreAll) {
  using Items = std::vector<Selection::Item>;
  const Problem problem = problem_of(130, 4, 2);
  const Selection one = selection_of(problem, all_tiles(problem, {1}));
  EXPECT_EQ(one.mode, Selection::Mode::heads);
  EXPECT_EQ(one.queries, (Items{{2, 0}, {2, 1}, {2, 2}, {3, 0}, {3, 1}, {3, 2}}));
  EXPECT_EQ(one.keys, (Items{{1, 0}, {1, 1}, {1, 2}}));
  EXPECT_EQ(selection_of(problem, all_tiles(problem, {0, 1})).mode, Selection::Mode::everything);
  const Selection some = selection_of(problem, {{1}, {0, 2}, {2}, false});
  EXPECT_EQ(some.mode, Selection::Mode::tiles);
  EXPECT_EQ(some.queries, (Items{{2, 0}, {2, 2}, {3, 0}, {3, 2}}));
  EXPECT_EQ(some.keys, (Items{{1, 2}}));
  EXPECT_EQ(tokens_in(some.queries, 130), 2 * 66);
}

TEST(WholeHeads, AreAllUpTo16384TokensByDefault) {
  for (const int heads_k : {8, 64}) {
    const Problem problem = problem_of(16384, 64, heads_k);
    EXPECT_EQ(draw_kv_heads(problem, test::small_mask("full", 16384), {}, 1).size(), heads_k);
    const double seconds =
        heads_k * estimated_seconds(problem, test::small_mask("full", 16384), {});
    EXPECT_LT(seconds, 2.5);
    EXPECT_GT(seconds, 1.5);
  }
}

TEST(WholeHeads, GrowWithTheBudgetFromOne) {
  const Problem problem = problem_of(32768);
  const Mask mask = test::small_mask("causal", 32768);
  std::size_t before = 1;
  for (const double seconds : {1e-9, 1.0, 4.0, 10.0, 20.0, 1000.0}) {
    const std::vector<int> heads = draw_kv_heads(problem, mask, {seconds, 0}, 3);
    EXPECT_GE(heads.size(), before);
    EXPECT_TRUE(std::ranges::is_sorted(heads));
    before = heads.size();
  }
  EXPECT_EQ(before, 8);
  EXPECT_EQ(draw_kv_heads(problem, mask, {1e-9, 0}, 3).size(), 1);
  EXPECT_EQ(draw_kv_heads(problem, mask, {4, 0}, 3), draw_kv_heads(problem, mask, {4, 0}, 3));
}

TEST(WholeHeads, AreDrawnFromTheSeed) {
  const Problem problem = problem_of(32768);
  const Mask mask = test::small_mask("full", 32768);
  std::set<int> drawn;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    drawn.insert(draw_kv_heads(problem, mask, {1e-9, 0}, seed).front());
  }
  EXPECT_EQ(drawn.size(), 8);
}

TEST(WholeHeads, CostWhatTheTilesOfTheMaskDo) {
  const Problem problem = problem_of(8192);
  const double full = estimated_seconds(problem, test::small_mask("full", 8192), {});
  EXPECT_NEAR(estimated_seconds(problem, test::small_mask("causal", 8192), {}), full / 2,
              0.02 * full);
  EXPECT_NEAR(estimated_seconds(problem_of(8192, 64, 64), test::small_mask("full", 8192), {}),
              full / 8, 1e-6);
  EXPECT_NEAR(estimated_seconds(problem, test::small_mask("full", 8192), {10, 60'000}), full / 2,
              1e-6);
}

}  // namespace
}  // namespace longca
