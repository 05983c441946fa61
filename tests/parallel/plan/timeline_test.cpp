#include "parallel/plan/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "parallel/plan/sample_plans.h"

namespace longca::testing {
namespace {

std::vector<TimelineBar> bars_of(const std::vector<RankPlan>& plans, bool backward,
                                 const PlanRates& rates) {
  return timeline(plans, backward, 8, DType::float32, rates);
}

double end_of(const std::vector<TimelineBar>& bars) {
  double end = 0;
  for (const TimelineBar& bar : bars) end = std::max(end, bar.end_ms);
  return end;
}

TEST(Timeline, ARingHidesItsMessagesBehindComputing) {
  const auto plans = sample_plans(sample_problem(3));
  // 36, 32, 32 cells × 4 heads × 8 take 9, 8, 8 ms; 1 KiB takes 4 ms.
  const auto bars = bars_of(plans, false, {.cells_per_ms = 128, .bytes_per_ms = 256});
  ASSERT_EQ(bars.size(), 15U);  // per rank 3 steps of computing and 2 of messages
  for (const TimelineBar& bar : bars) {
    const bool computes = bar.lane == Lane::compute;
    const double begin = bar.step == 0 ? 0 : bar.step == 1 ? 9 : 17;
    EXPECT_DOUBLE_EQ(bar.begin_ms, begin);
    EXPECT_DOUBLE_EQ(bar.end_ms - bar.begin_ms, !computes ? 4 : bar.step == 0 ? 9 : 8);
    EXPECT_EQ(bar.label, !computes ? "1 KiB" : bar.step == 0 ? "36 cells" : "32 cells");
    EXPECT_EQ(bar.bytes, computes ? 0 : 1024);
    EXPECT_DOUBLE_EQ(bar.area, !computes ? 0 : bar.step == 0 ? 144 : 128);
  }
}

TEST(Timeline, ComputingWaitsForSlowMessages) {
  const auto plans = sample_plans(sample_problem(3));
  const auto bars = bars_of(plans, false, {.cells_per_ms = 128, .bytes_per_ms = 64});
  // 16 ms per pass of the ring, twice, and the last step.
  EXPECT_DOUBLE_EQ(end_of(bars), 16 + 16 + 8);
}

TEST(Timeline, GradientsCostTwoAndAHalfTimesAsMuch) {
  const auto plans = sample_plans(sample_problem(1));
  const PlanRates rates{.cells_per_ms = 128, .bytes_per_ms = 64};
  EXPECT_DOUBLE_EQ(end_of(bars_of(plans, true, rates)), 2.5 * end_of(bars_of(plans, false, rates)));
}

/// An exchange waits for its slowest peer.
TEST(Timeline, MessagesWaitForBothEnds) {
  ParallelProblem problem = sample_problem(2);
  problem.shard = ShardKind::contiguous;  // rank 1 has more to compute
  const auto bars = bars_of(sample_plans(problem), true, {.cells_per_ms = 32, .bytes_per_ms = 1e9});
  std::map<int, std::pair<double, double>> last;  // of each rank's messages
  for (const TimelineBar& bar : bars) {
    if (bar.lane == Lane::communication) last[bar.rank] = {bar.begin_ms, bar.end_ms};
  }
  EXPECT_LT(last[0].first, last[1].first);
  EXPECT_DOUBLE_EQ(last[0].second, last[1].second);
}

TEST(Timeline, PlansThatDoNotFitAreRefused) {
  auto plans = sample_plans(sample_problem(2));
  std::get<Exchange>(plans[0].forward[0].what).sends.pop_back();
  EXPECT_THROW(bars_of(plans, false, {}), InternalError);
}

}  // namespace
}  // namespace longca::testing
