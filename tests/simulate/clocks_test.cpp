#include "simulate/clocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "simulate/engine.h"

namespace longca::simulate {
namespace {

constexpr double kShare = 0.25;  ///< by which the power limit slows a busy device down

/// Of no kernel: its power limit alone counts.
class Limited final : public KernelTimes {
 public:
  CallTime call(const Mask&, const cost::HeadShape&, cost::Pass) const override { return {}; }
  double slowdown(double, cost::Pass) const override { return 1; }
  double sustained_slowdown(double busy, double memory, double seconds, cost::Pass) const override {
    return cost::PowerLimit{kShare, 1, 0.5}.slowdown_at(busy, memory, seconds);
  }
  double hidden_seconds(cost::Pass) const override { return 0; }
};

/// A pass of calls alone: `seconds` of them, during which the SMs are busy for `busy_seconds`,
/// after `memory` seconds of passes over memory.
RankWork work_of(double seconds, double busy_seconds, double memory = 0) {
  RankWork work;
  work.ops.push_back({.seconds = memory, .after = {}});
  work.ops.push_back({.seconds = seconds, .cycle_seconds = seconds, .after = {0}});
  work.busy_seconds = busy_seconds;
  return work;
}

double settled(std::vector<RankWork> ranks) {
  const Cluster cluster = load_cluster("h200x8");
  Program program = link(std::move(ranks));
  settle_clocks(program, cluster, Limited(), cost::Pass::forward);
  return run(program, cluster, Exchanges::run).end();
}

TEST(Clocks, ABusyRankRunsAtTheLowestClock) {
  EXPECT_NEAR(settled({work_of(1, 1)}), 1 + kShare, 1e-3);
}

TEST(Clocks, ARankThatWaitsRunsAtFullClocks) {
  EXPECT_DOUBLE_EQ(settled({work_of(1, 0.4)}), 1);
  // The second rank is done after a quarter of the time; its own clock does not matter.
  EXPECT_NEAR(settled({work_of(1, 1), work_of(0.25, 0.25)}), 1 + kShare, 1e-3);
}

/// Between these the clock is the one at which the activity that it causes allows it.
TEST(Clocks, TheClockAndTheActivityAgree) {
  const double memory = 0.5;
  const double end = settled({work_of(1, 1, memory)});
  const double factor = end - memory;
  EXPECT_NEAR(factor, (1 + kShare) * std::cbrt((factor + memory / 2) / end), 3e-3);
  EXPECT_GT(factor, 1);
  EXPECT_LT(factor, 1 + kShare);
}

TEST(Clocks, APassWithoutWorkStaysEmpty) {
  EXPECT_EQ(settled({RankWork{}}), 0);
}

}  // namespace
}  // namespace longca::simulate
