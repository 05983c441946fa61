// What plans send, beside the closed formulas and the lower bound.
#include "parallel/schemes/build/formulas.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "parallel/schemes/random_problem.h"

namespace longca::testing {
namespace {

std::int64_t bytes_sent(const ParallelProblem& problem, const RankPlan& plan, bool backward) {
  const Problem& p = problem.problem;
  return sum_plan(plan, backward ? plan.backward : plan.forward, p.head_dim, p.dtype).bytes_sent;
}

class Formulas : public ::testing::TestWithParam<std::string> {};

/// Also where tokens do not divide and where rows are padded.
TEST_P(Formulas, AreWhatPlansSend) {
  const Scheme& scheme = find_scheme(GetParam());
  rc::check([&] {
    const ParallelProblem problem = random_problem(300);
    RC_PRE(scheme.supports(problem).ok());
    for (int rank = 0; rank < problem.ranks; ++rank) {
      const RankPlan plan = scheme.plan(problem, rank);
      for (const bool backward : {false, true}) {
        if (backward && !problem.problem.backward) continue;
        RC_ASSERT(scheme.formula_bytes(problem, rank, backward) ==
                  bytes_sent(problem, plan, backward));
      }
    }
  });
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Formulas, ::testing::ValuesIn(names()),
                         [](const auto& scheme) { return scheme.param; });

/// Causal, GQA 64:8, 4096 tokens, bfloat16, d 128.
ParallelProblem published_shape(int ranks, ShardKind shard) {
  ParallelProblem problem = problem_of(
      Mask::from_slices(4096, 4096, {{0, 4096, 0, 4096, MaskSliceType::causal}}), {}, 64, 8, ranks);
  problem.problem.head_dim = 128;
  problem.shard = shard;
  return problem;
}

constexpr std::int64_t kTokens = 4096;
constexpr std::int64_t kDim = 128;

/// Elements per token and dim are given; `size` bytes each.
std::int64_t bytes(std::int64_t elements, std::int64_t size) {
  return elements * kDim * size;
}

TEST(FormulasInWords, Ulysses) {
  for (const int n : {2, 4, 8}) {
    const auto problem = published_shape(n, ShardKind::contiguous);
    const std::int64_t elements = (n - 1) * kTokens * (64 + 8) * 2 / (n * n);
    EXPECT_EQ(find_scheme("ulysses").formula_bytes(problem, 0, false), bytes(elements, 2));
    EXPECT_EQ(find_scheme("ulysses").formula_bytes(problem, n - 1, true), bytes(elements, 2));
  }
}

TEST(FormulasInWords, UlyssesBeyondTheKvHeads) {
  const auto problem = published_shape(32, ShardKind::contiguous);
  const std::int64_t rows = kTokens / 32;
  const std::int64_t forward = bytes(rows * 31 * (2 * 64 / 32 + 2), 2);
  EXPECT_EQ(find_scheme("ulysses").formula_bytes(problem, 7, false), forward);
  const std::int64_t backward =
      bytes(rows * 31 * 2 * 64 / 32, 2) + bytes(rows * 31 * 2, 4);  // partial dk, dv: float32
  EXPECT_EQ(find_scheme("ulysses").formula_bytes(problem, 7, true), backward);
}

TEST(FormulasInWords, RingAndGatherSendAllKeysOfAllOtherRanks) {
  for (const char* name : {"ring_p2p", "ring_allgather"}) {
    for (const int n : {2, 4, 8}) {
      const auto problem = published_shape(n, ShardKind::zigzag);
      const std::int64_t elements = (n - 1) * kTokens / n * 8 * 2;
      EXPECT_EQ(find_scheme(name).formula_bytes(problem, 1, false), bytes(elements, 2)) << name;
      EXPECT_EQ(find_scheme(name).formula_bytes(problem, 1, true), bytes(elements, 2 + 4)) << name;
    }
  }
}

TEST(FormulasInWords, TwoDimensionsSendTheSumOfBoth) {
  auto problem = published_shape(8, ShardKind::zigzag);
  problem.factor = 4;
  problem.ranks_per_node = 4;
  const std::int64_t rows = kTokens / 8;
  const std::int64_t heads = rows * 3 * (64 + 8) * 2 / 4;
  const std::int64_t ring = rows * 4 * (8 / 4) * 2;
  for (const char* name : {"usp", "loongtrain"}) {
    const Scheme& scheme = find_scheme(name);
    EXPECT_EQ(scheme.formula_bytes(problem, 5, false), bytes(heads + ring, 2)) << name;
    EXPECT_EQ(scheme.formula_bytes(problem, 5, true), bytes(heads, 2) + bytes(ring, 6)) << name;
  }
}

TEST(FormulasInWords, OneRankSendsNothing) {
  for (const auto& scheme : schemes()) {
    EXPECT_EQ(scheme->formula_bytes(published_shape(1, ShardKind::zigzag), 0, true), 0);
  }
}

RC_GTEST_PROP(CountSeenKeys, CountsColumnsOfTheDenseMask, ()) {
  const ParallelProblem problem = random_problem(60);
  const Mask& mask = problem.mask;
  const Sharding sharding(problem.shard, mask, problem.lengths, problem.ranks);
  const std::vector<Range> rows = sharding.ranges(0);
  const std::vector<Range> keys = sharding.ranges(problem.ranks - 1);
  std::int64_t seen = 0;
  for (const Range range : keys) {
    for (std::int64_t k = range.begin; k < range.end; ++k) {
      bool is_seen = false;
      for (int head = 0; head < mask.heads(); ++head) {
        for (const Range queries : rows) {
          for (std::int64_t q = queries.begin; q < queries.end; ++q) {
            is_seen = is_seen || mask.allows(head, q, k);
          }
        }
      }
      seen += is_seen;
    }
  }
  RC_ASSERT(count_seen_keys(mask, rows, keys) == seen);
}

}  // namespace
}  // namespace longca::testing
