#include "simulate/lower.h"

#include <gtest/gtest.h>

#include <map>

#include "parallel/executor/op_analysis.h"
#include "simulate/engine.h"
#include "simulate/problems.h"

namespace longca::simulate {
namespace {

using testing::problem_over;

OpTimes h200_times() {
  static const SliceTimes slice(cost::default_platform());
  return {&slice, &cost::default_platform(), 128, DType::bfloat16};
}

/// What travels in the simulation is what the plan sends and what the scheme's formula says.
TEST(Lower, KeepsTheBytesOfPlanAndFormula) {
  const Cluster cluster = load_cluster("h100x8_ib400");
  for (const auto& scheme : schemes()) {
    for (const char* mask : {"full", "causal", "causal_document"}) {
      ParallelProblem problem = problem_over(16, mask);
      problem.shard = scheme->best_shard();
      problem.factor = scheme->factor(problem);
      if (!scheme->supports(problem).ok()) continue;
      for (const bool backward : {false, true}) {
        std::vector<RankWork> works;
        std::vector<std::int64_t> planned;
        std::vector<std::int64_t> formula;
        for (int rank = 0; rank < problem.ranks; ++rank) {
          const RankPlan plan = scheme->plan(problem, rank);
          works.push_back(lower(plan, backward, h200_times()));
          planned.push_back(
              sum_plan(plan, backward ? plan.backward : plan.forward, 128, DType::bfloat16)
                  .bytes_sent);
          formula.push_back(scheme->formula_bytes(problem, rank, backward));
        }
        const SimulatedPass pass = run(link(std::move(works)), cluster, Exchanges::run);
        EXPECT_EQ(pass.bytes_sent, planned) << scheme->name() << ' ' << mask << ' ' << backward;
        EXPECT_EQ(pass.bytes_sent, formula) << scheme->name() << ' ' << mask << ' ' << backward;
      }
    }
  }
}

TEST(Lower, OneRankTakesItsKernelsTime) {
  ParallelProblem problem = problem_over(1, "causal");
  const RankPlan plan = find_scheme("ring_p2p").plan(problem, 0);
  const OpTimes times = h200_times();
  const RankWork work = lower(plan, false, times);
  const double alone = times.kernel->seconds(problem.mask, {64, 8, 128, 2}, cost::Pass::forward);
  const double kernel = times.kernel->slowed(alone, cost::Pass::forward);
  std::vector<RankWork> works = {work};
  const SimulatedPass pass = run(link(works), load_cluster("h200"), Exchanges::run);
  EXPECT_DOUBLE_EQ(pass.end(), kernel);
}

/// Without pauses calls begin beside the end of those before, and clocks settle afterwards.
TEST(Lower, ASustainedPassIsOfCallsAtFullClocks) {
  ParallelProblem problem = problem_over(1, "causal");
  const RankPlan plan = find_scheme("ring_p2p").plan(problem, 0);
  OpTimes times = h200_times();
  times.sustained = true;
  const RankWork work = lower(plan, false, times);
  const CallTime call = times.kernel->call(problem.mask, {64, 8, 128, 2}, cost::Pass::forward);
  EXPECT_EQ(work.busy_seconds, call.busy_seconds);
  double cycles = 0;
  for (const TimedOp& op : work.ops) cycles += op.cycle_seconds;
  EXPECT_EQ(cycles, call.cycle_seconds);
  const SimulatedPass pass = run(link({work}), load_cluster("h200"), Exchanges::run);
  EXPECT_DOUBLE_EQ(pass.end(), call.seconds - cost::default_platform().call.forward.hidden_seconds);
}

/// The executor does a run of copies by one kernel, with the first of them.
TEST(Lower, ARunOfCopiesIsDoneWithItsFirst) {
  ParallelProblem problem = problem_over(4, "causal");
  const RankPlan plan = find_scheme("ulysses").plan(problem, 0);
  const OpRuns runs(plan, plan.forward);
  const RankWork work = lower(plan, false, h200_times());
  const cost::Platform& platform = cost::default_platform();
  std::map<int, double> bytes;  // by the first op of a run
  for (std::size_t i = 0; i < plan.forward.size(); ++i) {
    const auto* copy = std::get_if<Copy>(&plan.forward[i].what);
    if (copy == nullptr) continue;
    const int first = runs.first(static_cast<int>(i));
    bytes[first] += 2 * static_cast<double>(region_bytes(plan, copy->from, 128, DType::bfloat16));
    if (first != static_cast<int>(i)) {
      EXPECT_EQ(work.ops[i].seconds, 0) << i;
    }
  }
  ASSERT_FALSE(bytes.empty());
  for (const auto& [first, moved] : bytes) {
    EXPECT_NEAR(work.ops[static_cast<std::size_t>(first)].seconds,
                platform.memory.seconds_per_copy + moved / platform.memory.bytes_per_second, 1e-12);
  }
}

/// A kernel that merges the one earlier result leaves no pass: O for nothing, as it loads that
/// while it computes, dQ for reading it.
TEST(Lower, AKernelThatMergesTheEarlierResultLeavesNoPass) {
  ParallelProblem problem = problem_over(2, "causal");
  problem.shard = ShardKind::balanced;
  OpTimes times = h200_times();
  const cost::Platform& platform = *times.platform;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    for (const bool backward : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rank << (backward ? " backward" : " forward"));
      const RankPlan plan = find_scheme("ring_p2p").plan(problem, rank);
      times.merges_earlier = times.adds_to_dq = false;
      const RankWork after = lower(plan, backward, times);
      times.merges_earlier = times.adds_to_dq = true;
      const RankWork by_kernel = lower(plan, backward, times);
      double in_calls = 0;
      double passes = 0;  // elements
      const std::vector<Op>& ops = backward ? plan.backward : plan.forward;
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const double less = after.ops[i].seconds - by_kernel.ops[i].seconds;
        const auto* convert = std::get_if<Convert>(&ops[i].what);
        if (convert == nullptr) {
          in_calls += less;
        } else if (after.ops[i].seconds > 0) {
          EXPECT_EQ(by_kernel.ops[i].seconds, 0);
          // Two parts are read and one is written; of dQ half of the heads at a time.
          const int launches = backward ? 2 : 1;
          const double moving = less - launches * platform.memory.seconds_per_copy;
          passes += moving * platform.memory.bytes_per_second / 6;
        }
      }
      EXPECT_GT(passes, 0);
      const double read = backward ? passes * 2 / platform.memory.bytes_per_second : 0;
      EXPECT_NEAR(in_calls, -read, 1e-9);
    }
  }
}

TEST(Lower, RowWorkThatIsDoneEarlyIsDoneOnce) {
  ParallelProblem problem = problem_over(4, "full");
  problem.shard = ShardKind::balanced;
  const RankPlan plan = find_scheme("ring_p2p").plan(problem, 1);
  const CallRate rate{500e12, 200, 20e-6};
  const RateTimes kernel(rate, rate);
  const cost::Platform& platform = cost::default_platform();
  const RankWork work = lower(plan, true, {&kernel, &platform, 128, DType::bfloat16});
  EXPECT_GT(work.early_seconds, 0);
  double calls = work.early_seconds;
  double whole = 0;
  for (std::size_t i = 0; i < plan.backward.size(); ++i) {
    const auto* step = std::get_if<AttendBackward>(&plan.backward[i].what);
    if (step == nullptr) continue;
    calls += work.ops[i].seconds;
    const Mask& mask = plan.masks[static_cast<std::size_t>(step->mask)];
    whole += rate.seconds(mask.mean_area(), static_cast<double>(step->q.tokens.size()),
                          static_cast<int>(step->q.heads.size()), 128, cost::Pass::backward);
    if (!step->first_dkv) {
      const double sums = static_cast<double>(region_bytes(plan, step->dk, 128, DType::bfloat16) +
                                              region_bytes(plan, step->dv, 128, DType::bfloat16));
      whole += 2 * sums / platform.memory.bytes_per_second;
    }
  }
  EXPECT_NEAR(calls / whole, 1, 1e-12);
}

/// The executor writes a step's result where it belongs and merges only rows of several steps.
TEST(Lower, RowsOfOneStepAreNotMerged) {
  ParallelProblem problem = problem_over(2, "full");
  problem.shard = ShardKind::balanced;
  const cost::Platform& platform = cost::default_platform();
  const CallRate rate{500e12, 200, 20e-6};
  const RateTimes kernel(rate, rate);
  const auto merging = [&](const Mask& mask) {
    problem.mask = mask;
    const RankPlan plan = find_scheme("ring_p2p").plan(problem, 0);
    const RankWork work = lower(plan, false, {&kernel, &platform, 128, DType::bfloat16});
    double seconds = 0;
    for (std::size_t i = 0; i < plan.forward.size(); ++i) {
      if (std::holds_alternative<Convert>(plan.forward[i].what)) seconds += work.ops[i].seconds;
    }
    return seconds;
  };
  const std::int64_t tokens = problem.mask.q_tokens();
  const double row_bytes = 64.0 * 128 * 2;
  const Mask everything = Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens}});
  // All rows of the rank have two parts and a result.
  EXPECT_NEAR(merging(everything),
              platform.memory.seconds_per_copy +
                  1.5 * row_bytes * static_cast<double>(tokens) / platform.memory.bytes_per_second,
              1e-9);
  // The balanced shard of rank 0 has the first and the last quarter: they see their own keys only.
  const std::int64_t quarter = tokens / 4;
  const Mask apart = Mask::from_slices(
      tokens, tokens, {{0, quarter, 0, quarter}, {3 * quarter, tokens, 3 * quarter, tokens}});
  EXPECT_EQ(merging(apart), 0);
}

}  // namespace
}  // namespace longca::simulate
