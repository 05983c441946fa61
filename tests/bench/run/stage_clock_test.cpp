#include "bench/run/stage_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace longca {
namespace {

RunLimits limits_of(double case_limit_s) {
  RunLimits limits;
  limits.case_limit_s = case_limit_s;
  return limits;
}

TEST(StageClock, NamesTheStageThatTookTooLong) {
  const RunLimits limits = limits_of(120);
  StageClock clock(limits);
  EXPECT_FALSE(clock.has_begun());
  EXPECT_EQ(clock.timeout_reason(),
            "the start of its process had not ended when the cell's 120 s were up");
  clock.enter("forward");
  EXPECT_TRUE(clock.has_begun());
  EXPECT_EQ(clock.timeout_reason(), "forward had not ended when the cell's 120 s were up");
  clock.enter("reference");
  EXPECT_EQ(clock.timeout_reason(), "reference did not end");
}

TEST(StageClock, StandsStillInTheRunnersOwnWork) {
  const RunLimits limits = limits_of(0);
  StageClock clock(limits);
  clock.enter("reference");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(clock.in_own_work());
  EXPECT_FALSE(clock.expired());
  clock.enter("forward");
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(clock.expired());
}

TEST(StageClock, AddsUpTheKernelsOwnStages) {
  const RunLimits limits = limits_of(0.02);
  StageClock clock(limits);
  clock.enter("forward");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  clock.enter("verify");
  EXPECT_FALSE(clock.expired());
  clock.enter("backward");
  EXPECT_TRUE(clock.expired());
  EXPECT_EQ(clock.stages_entered(), 3);
}

}  // namespace
}  // namespace longca
