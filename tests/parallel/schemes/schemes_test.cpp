// What the schemes promise beside being right: limits, choices, overlap, plain steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/plan/explain.h"
#include "parallel/plan/lane_order.h"
#include "parallel/plan/rank_shard.h"
#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/random_problem.h"

namespace longca::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

ParallelProblem causal_problem(int ranks, int heads_q, int heads_k, ShardKind shard,
                               std::int64_t tokens = 256) {
  ParallelProblem problem =
      problem_of(Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::causal}}),
                 {}, heads_q, heads_k, ranks);
  problem.shard = shard;
  return problem;
}

template <typename Kind>
std::vector<const Kind*> ops_of(const std::vector<Op>& ops) {
  std::vector<const Kind*> found;
  for (const Op& op : ops) {
    if (const auto* kind = std::get_if<Kind>(&op.what)) found.push_back(kind);
  }
  return found;
}

TEST(Schemes, AreFoundByName) {
  EXPECT_EQ(find_scheme("loongtrain").name(), "loongtrain");
  EXPECT_EQ(schemes().size(), 6);
  try {
    find_scheme("ulises");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown scheme 'ulises' (did you mean 'ulysses'?)");
  }
}

TEST(Schemes, UlyssesNamesTheLimitOfHeads) {
  const Scheme& ulysses = find_scheme("ulysses");
  const auto reason = [&](int ranks, int heads_q, int heads_k) {
    const Support support =
        ulysses.supports(causal_problem(ranks, heads_q, heads_k, ShardKind::contiguous));
    EXPECT_EQ(support.code, StatusCode::unsupported);
    return support.reason;
  };
  EXPECT_EQ(reason(16, 8, 4), "16 ranks share the heads: at most one per query head, here 8");
  EXPECT_EQ(reason(3, 8, 4), "3 ranks share the heads: their number must divide the 8 query heads");
  EXPECT_EQ(reason(4, 12, 6),
            "4 ranks share the heads: their number must divide the 6 KV heads, or be a multiple of "
            "them");
}

TEST(Schemes, NoRanksAreRefused) {
  for (const auto& scheme : schemes()) {
    for (const int ranks : {0, -2}) {
      const auto problem = causal_problem(ranks, 8, 4, ShardKind::contiguous);
      EXPECT_EQ(scheme->supports(problem).reason, std::to_string(ranks) + " ranks: at least 1");
    }
  }
}

TEST(Schemes, ReplicatedKvHeadsAreNoted) {
  const auto problem = causal_problem(8, 16, 2, ShardKind::contiguous);
  EXPECT_THAT(find_scheme("ulysses").plan(problem, 3).notes,
              Contains("each KV head is held by 4 ranks"));
}

TEST(Schemes, AFactorMustDivideTheRanksAndSuitTheHeads) {
  for (const char* name : {"usp", "loongtrain"}) {
    const Scheme& scheme = find_scheme(name);
    auto problem = causal_problem(8, 16, 4, ShardKind::zigzag);
    problem.factor = 3;
    EXPECT_EQ(scheme.supports(problem).reason, "factor 3 does not divide the 8 ranks");
    problem.factor = -1;
    EXPECT_EQ(scheme.supports(problem).reason, "factor -1 does not divide the 8 ranks");
    problem.factor = 8;
    EXPECT_TRUE(scheme.supports(problem).ok());  // KV heads replicated
    problem.problem.heads_q = 12;
    EXPECT_THAT(scheme.supports(problem).reason, HasSubstr("must divide the 12 query heads"));
  }
}

TEST(Schemes, TheFactorIsTheNodeOrTheKvHeads) {
  const Scheme& usp = find_scheme("usp");
  auto problem = causal_problem(32, 64, 8, ShardKind::zigzag);
  EXPECT_EQ(usp.factor(problem), 8);
  problem.ranks_per_node = 4;
  EXPECT_EQ(usp.factor(problem), 4);
  problem.problem.heads_k = 2;
  EXPECT_EQ(usp.factor(problem), 2);
  problem.factor = 16;
  EXPECT_EQ(usp.factor(problem), 16);
  EXPECT_EQ(find_scheme("ring_p2p").factor(problem), 1);
}

/// Whoever divides the heads is on one node, whatever its size.
TEST(Schemes, TheFactorDividesTheNode) {
  const auto factor = [](int ranks, int per_node, int heads_k = 8) {
    auto problem = causal_problem(ranks, 48, heads_k, ShardKind::zigzag);
    problem.ranks_per_node = per_node;
    EXPECT_EQ(find_scheme("usp").factor(problem), find_scheme("loongtrain").factor(problem));
    return find_scheme("usp").factor(problem);
  };
  EXPECT_EQ(factor(12, 6), 2) << "4 divides ranks and heads, and ranks 4 to 7 are on two nodes";
  EXPECT_EQ(factor(12, 6, 6), 6);
  EXPECT_EQ(factor(24, 12), 4) << "not 8";
  EXPECT_EQ(factor(8, 12), 8) << "one node, not a full one";
  EXPECT_EQ(factor(10, 5), 1) << "a ring, rather than heads divided across nodes";
}

TEST(Schemes, LoongTrainPlacesWhatMovesMoreInsideTheNode) {
  const Scheme& loongtrain = find_scheme("loongtrain");
  auto problem = causal_problem(8, 64, 8, ShardKind::zigzag);
  EXPECT_THAT(loongtrain.plan(problem, 0).notes, Contains("placement: head-first"));
  // Few query heads to exchange, long rings of nodes: rather the rings inside.
  problem = causal_problem(64, 8, 8, ShardKind::zigzag);
  problem.factor = 2;
  EXPECT_THAT(loongtrain.plan(problem, 0).notes, Contains("placement: context-first"));
}

TEST(Schemes, OneRankAttendsOnceAndSendsNothing) {
  for (const auto& scheme : schemes()) {
    const RankPlan plan = scheme->plan(causal_problem(1, 8, 4, ShardKind::zigzag), 0);
    ASSERT_EQ(plan.forward.size(), 1) << scheme->name();
    ASSERT_EQ(plan.backward.size(), 1) << scheme->name();
    EXPECT_EQ(ops_of<Attend>(plan.forward).size(), 1);
    EXPECT_EQ(ops_of<AttendBackward>(plan.backward).size(), 1);
    for (const PlanBuffer& buffer : plan.buffers) EXPECT_TRUE(buffer.external) << buffer.name;
  }
}

/// So that kernels without words for slices can run them.
TEST(Schemes, StepsOfACausalZigzagArePlain) {
  for (const char* name : {"ring_p2p", "usp", "loongtrain"}) {
    auto problem = causal_problem(4, 8, 4, ShardKind::zigzag);
    problem.factor = 1;
    for (int rank = 0; rank < 4; ++rank) {
      const RankPlan plan = find_scheme(name).plan(problem, rank);
      EXPECT_EQ(plan.masks.size(), 4);
      for (std::size_t i = 0; i < plan.masks.size(); ++i) {
        const Mask& mask = plan.masks[i];
        const MaskSlice plain = {0, mask.q_tokens(), 0, mask.k_tokens(),
                                 i == 0 ? MaskSliceType::causal : MaskSliceType::full};
        EXPECT_EQ(std::vector<MaskSlice>(mask.slices().begin(), mask.slices().end()),
                  std::vector<MaskSlice>{plain});
      }
      EXPECT_TRUE(ops_of<Clear>(plan.forward).empty()) << name;
    }
  }
}

/// Rank 0's first 10 rows and its last 20 see keys of rank 1, those between see none.
ParallelProblem problem_with_gap(std::int64_t min_gap) {
  std::vector<MaskSlice> slices = {{0, 100, 0, 100, MaskSliceType::causal},
                                   {0, 10, 100, 150, MaskSliceType::full},
                                   {80, 100, 130, 200, MaskSliceType::full},
                                   {100, 200, 100, 200, MaskSliceType::causal}};
  ParallelProblem problem = problem_of(Mask::from_slices(200, 200, std::move(slices)), {}, 8, 4, 2);
  problem.min_gap = min_gap;
  return problem;
}

TEST(Schemes, AStepIsCutWhereManyRowsSeeNoneOfItsKeys) {
  const auto pieces = [](std::int64_t min_gap) {
    const RankPlan plan = find_scheme("ring_p2p").plan(problem_with_gap(min_gap), 0);
    std::vector<std::pair<Range, Range>> found;
    for (const Attend* attend : ops_of<Attend>(plan.forward)) {
      if (!attend->first) found.emplace_back(attend->q.tokens, attend->k.tokens);
    }
    EXPECT_EQ(found.size(), ops_of<Attend>(plan.forward).size() - 1);
    EXPECT_TRUE(ops_of<Clear>(plan.forward).empty());
    return found;
  };
  using Pieces = std::vector<std::pair<Range, Range>>;
  EXPECT_EQ(pieces(70), (Pieces{{{0, 10}, {0, 50}}, {{80, 100}, {30, 100}}}));
  EXPECT_EQ(pieces(71), (Pieces{{{0, 100}, {0, 100}}}));
  EXPECT_EQ(pieces(0), (Pieces{{{0, 100}, {0, 100}}})) << "a call more costs more than 70 rows";
}

/// One step has results of the problem's dtype, which a second call could not add to.
TEST(Schemes, APlanOfOneTurnIsNotCut) {
  const RankPlan plan = find_scheme("ulysses").plan(problem_with_gap(1), 0);
  EXPECT_EQ(plan.masks.size(), 1);
}

/// Of the shapes that plans' bytes are not of.
TEST(Schemes, AVOfItsOwnDimensionIsRefused) {
  for (const auto& scheme : schemes()) {
    auto problem = causal_problem(2, 8, 4, ShardKind::contiguous);
    EXPECT_TRUE(scheme->supports(problem).ok()) << scheme->name();
    problem.problem.head_dim = 192;
    problem.problem.head_dim_v = 128;
    const Support support = scheme->supports(problem);
    EXPECT_EQ(support.code, StatusCode::unsupported) << scheme->name();
    EXPECT_NE(support.reason.find("so not dim=192:128"), std::string::npos) << support.reason;
  }
}

/// What travels during a step waits at most for the step before: two buffers.
TEST(Schemes, KeysTravelWhileTheStepBeforeIsComputed) {
  for (const char* name : {"ring_p2p", "ring_allgather", "magi", "loongtrain"}) {
    auto problem = causal_problem(8, 8, 4, ShardKind::zigzag);
    problem.factor = 1;
    problem.ranks_per_node = 4;
    const RankPlan plan = find_scheme(name).plan(problem, 3);
    int exchanges = 0;
    for (const Op& op : plan.forward) {
      if (!std::holds_alternative<Exchange>(op.what)) continue;
      ++exchanges;
      for (const int before : op.after) {
        EXPECT_LT(plan.forward[static_cast<std::size_t>(before)].step, op.step) << name;
      }
    }
    EXPECT_GE(exchanges, name == std::string("magi") ? 1 : 3) << name;
  }
}

/// The last sums go home while half of the own step's heads are computed.
TEST(Schemes, TheLastGradientsTravelBesideOwnWork) {
  for (const char* name : {"ring_p2p", "ring_allgather", "magi", "usp", "loongtrain"}) {
    auto problem = causal_problem(4, 64, 8, ShardKind::zigzag, 4 * 8192);
    problem.problem.head_dim = 128;
    problem.factor = find_scheme(name).has_factor() ? 2 : 0;
    const RankPlan plan = find_scheme(name).plan(problem, 3);
    int sums_on_their_way = -1;
    bool computes_meanwhile = false;
    for (int i = 0; i < std::ssize(plan.backward); ++i) {
      const Op& op = plan.backward[static_cast<std::size_t>(i)];
      const auto* exchange = std::get_if<Exchange>(&op.what);
      if (exchange != nullptr && exchange->pattern != Pattern::all_to_all) {
        sums_on_their_way = i;
        computes_meanwhile = false;
      }
      if (!std::holds_alternative<AttendBackward>(op.what) || sums_on_their_way < 0) continue;
      computes_meanwhile =
          std::find(op.after.begin(), op.after.end(), sums_on_their_way) == op.after.end();
    }
    const auto* last =
        std::get_if<Exchange>(&plan.backward[static_cast<std::size_t>(sums_on_their_way)].what);
    EXPECT_EQ(plan.buffers[static_cast<std::size_t>(last->sends[0].region.buffer)].role,
              TensorRole::dk);
    EXPECT_TRUE(computes_meanwhile) << name;
  }
}

/// Rank 1 sees the last 1023 keys of rank 0, which rounds all others before the gradients of those
/// arrive.
TEST(Schemes, GradientsToWhichNoMessageAddsAreRoundedMeanwhile) {
  constexpr std::int64_t kOwn = 8192;
  constexpr std::int64_t kAlone = kOwn - 1023;
  MaskSpec spec;
  spec.name = "sliding_window_causal";
  spec.tokens = 2 * kOwn;
  spec.window = 1024;
  ParallelProblem problem = problem_of(generate_mask(spec).mask, {}, 64, 64, 2);
  problem.problem.head_dim = 128;
  problem.shard = ShardKind::contiguous;
  const RankPlan plan = find_scheme("magi").plan(problem, 0);
  const LaneOrder order(plan.backward);
  int gradients = -1;
  std::int64_t rounded = 0;
  for (int i = 0; i < std::ssize(plan.backward); ++i) {
    const Op& op = plan.backward[static_cast<std::size_t>(i)];
    if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
      if (!exchange->receives.empty()) gradients = i;
    } else if (const auto* total = std::get_if<Total>(&op.what)) {
      ASSERT_GE(gradients, 0);
      const bool awaited = total->to.tokens.end > kAlone;
      EXPECT_EQ(order.unordered(i, gradients), !awaited) << total->to.tokens.begin;
      EXPECT_EQ(total->parts.size(), awaited ? 2 : 1);
      rounded += total->to.tokens.size();
    }
  }
  EXPECT_EQ(rounded, 2 * kOwn);  // of dk and of dv
}

TEST(Schemes, UlyssesComputesOneChunkWhileTheNextArrives) {
  const auto problem = causal_problem(2, 16, 8, ShardKind::contiguous);
  const RankPlan plan = find_scheme("ulysses").plan(problem, 1);
  std::vector<std::vector<int>> waits;
  for (const Op& op : plan.forward) {
    if (std::holds_alternative<Attend>(op.what)) waits.push_back(op.after);
  }
  // Four chunks, each an exchange. The own q, k and v of all of them are copied beside the first: a
  // copy beside attention would wait until that ends, and the next exchange for the copy.
  EXPECT_EQ(waits, (std::vector<std::vector<int>>{{0}, {1}, {2}, {3}}));
  for (const Op& op : plan.forward) {
    const bool sends = std::holds_alternative<Exchange>(op.what);
    EXPECT_EQ(op.lane, sends ? Lane::communication : Lane::compute);
  }
  const Op& last = plan.forward.back();
  EXPECT_TRUE(std::holds_alternative<Copy>(last.what));
  EXPECT_EQ(last.lane, Lane::compute);
  EXPECT_TRUE(last.after.empty()) << "the own rows wait for the last exchange";
}

RC_GTEST_PROP(Schemes, PlansAreTheSameEachTime, ()) {
  const ParallelProblem problem = random_problem(100);
  for (const auto& scheme : schemes()) {
    if (!scheme->supports(problem).ok()) continue;
    const int rank = uniform(0, problem.ranks);
    const RankPlan once = scheme->plan(problem, rank);
    const RankPlan again = scheme->plan(problem, rank);
    RC_ASSERT(once.buffers == again.buffers);
    RC_ASSERT(explain(once, 16, DType::bfloat16) == explain(again, 16, DType::bfloat16));
  }
}

RC_GTEST_PROP(Schemes, PlansShareTokensAsTheirGridSays, ()) {
  const ParallelProblem problem = random_problem(100);
  for (const auto& scheme : schemes()) {
    if (!scheme->supports(problem).ok()) continue;
    const Grid grid(problem, scheme->grid_shape(problem));
    const int rank = uniform(0, problem.ranks);
    const RankShard in_plan = shard_of(scheme->plan(problem, rank));
    RC_ASSERT(grid.own_shard(rank).ranges == in_plan.tokens);
    RC_ASSERT(grid.own_shard(rank).rows == in_plan.rows);
  }
}

}  // namespace
}  // namespace longca::testing
