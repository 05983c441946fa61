#include "parallel/plan/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "parallel/plan/lane_order.h"
#include "parallel/plan/sample_plans.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

TEST(Explain, SaysWhatARankComputesAndSendsInEachStep) {
  const auto plans = sample_plans(sample_problem(3));
  EXPECT_EQ(explain(plans[1], 8, DType::float32),
            // clang-format off
R"(rank 1 of 3: 21 buffers, 19.12 KiB, of which 6.125 KiB are the caller's
forward: 3 steps, 400 cells × query heads, sends 2 KiB in 4 messages, receives 2 KiB
  step 0: attend 8 × 8, causal, 36 cells, heads 4:2 | send_receive of k, v: 1 KiB to rank 2 and 1 KiB from rank 0; beside step 0
  step 1: attend 8 × 8, 1 slice, 32 cells, heads 4:2 | send_receive of k, v: 1 KiB to rank 2 and 1 KiB from rank 0; beside step 1
  step 2: attend 8 × 8, 1 slice, 32 cells, heads 4:2 | round 1 KiB
backward: 4 steps, 400 cells × query heads, sends 4 KiB in 8 messages, receives 4 KiB
  step 0: gradients of 8 × 8, causal, 36 cells, heads 4:2 | clear 1 KiB | all_gather of k, v: 2 KiB to ranks 0, 2 and 2 KiB from ranks 0, 2; beside step 0
  step 1: gradients of 8 × 8, 1 slice, 32 cells, heads 4:2
  step 2: gradients of 8 × 8, 1 slice, 32 cells, heads 4:2
  step 3: add 2 KiB | round 2 KiB | reduce_scatter of dk, dv: 2 KiB to ranks 0, 2 and 2 KiB from ranks 0, 2; beside nothing
)");
  // clang-format on
}

TEST(Explain, SaysNotesAndLeavesOutPassesThatAreNotThere) {
  ParallelProblem problem = sample_problem(1);
  problem.problem.backward = false;
  RankPlan plan = sample_plans(problem)[0];
  plan.notes = {"each KV head is held by 2 ranks"};
  const std::string text = explain(plan, 8, DType::float32);
  EXPECT_THAT(text, HasSubstr("  each KV head is held by 2 ranks\nforward: 1 step, "));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("backward")));
}

TEST(Explain, NamesTheShapeOfMasks) {
  ParallelProblem problem = sample_problem(1);
  problem.mask = Mask::from_slices(
      24, 24, {{0, 4, 0, 4, MaskSliceType::full}, {4, 24, 4, 24, MaskSliceType::causal}});
  EXPECT_THAT(explain(sample_plans(problem)[0], 8, DType::float32),
              HasSubstr("attend 24 × 24, 2 slices, 226 cells, heads 4:2"));
  BlockLists blocks{{0, 12, 24}, {0, 24}, 2, {0, 1, 1, 1, 2}, {0, 0}};
  problem.mask = Mask::from_blocks(24, 24, {{0, 24, 0, 24, MaskSliceType::full}}, blocks);
  EXPECT_THAT(explain(sample_plans(problem)[0], 8, DType::float32),
              HasSubstr("24 × 24, full in blocks, 288 cells"));
}

TEST(Explain, GivesFiguresThatFit) {
  EXPECT_EQ(plan_bytes(0), "0 B");
  EXPECT_EQ(plan_bytes(1536), "1.5 KiB");
  EXPECT_EQ(plan_bytes(std::int64_t{64} << 20), "64 MiB");
  EXPECT_EQ(plan_cells(999999), "999999");
  EXPECT_EQ(plan_cells(134217728), "134.2 M");
  EXPECT_EQ(plan_cells(2.5e12), "2.5 T");
}

TEST(LaneOrder, KnowsWhatMayGoOnSideBySide) {
  const auto op = [](Lane lane, std::vector<int> after) { return Op{Clear{}, after, lane}; };
  constexpr Lane kCompute = Lane::compute;
  constexpr Lane kMessages = Lane::communication;
  const LaneOrder order({op(kMessages, {}), op(kCompute, {}), op(kCompute, {0}), op(kMessages, {1}),
                         op(kCompute, {}), op(kMessages, {4})});
  EXPECT_TRUE(order.unordered(0, 1));
  EXPECT_FALSE(order.unordered(0, 2));  // named
  EXPECT_FALSE(order.unordered(0, 4));  // behind one that waited
  EXPECT_FALSE(order.unordered(1, 2));  // the same lane
  EXPECT_FALSE(order.unordered(3, 1));
  EXPECT_TRUE(order.unordered(3, 2));
  EXPECT_TRUE(order.unordered(3, 4));
  EXPECT_FALSE(order.unordered(5, 2));  // before one that it waits for
  EXPECT_FALSE(order.unordered(5, 5));
}

}  // namespace
}  // namespace longca::testing
