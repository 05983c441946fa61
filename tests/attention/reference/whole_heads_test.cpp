#include "attention/reference/whole_heads.h"

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
