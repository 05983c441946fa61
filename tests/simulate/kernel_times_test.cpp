#include "simulate/kernel_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "attention/kernels/slice/planner/call_estimate.h"

namespace longca::simulate {
namespace {

constexpr CallRate kTrue{500e12, 200, 20e-6};

std::vector<TimedCall> calls_of(const CallRate& rate) {
  std::vector<TimedCall> calls;
  for (const double rows : {2048.0, 8192.0, 32768.0}) {
    for (const double keys : {500.0, rows / 2}) {
      TimedCall call{rows * keys, rows, 64, 128, 0};
      call.seconds = rate.seconds(call.area, call.rows, 64, 128, cost::Pass::forward);
      calls.push_back(call);
    }
  }
  return calls;
}

TEST(KernelTimes, ACallIsItsCellsRowsAndItself) {
  EXPECT_DOUBLE_EQ(kTrue.seconds(1e6, 1e3, 2, 64, cost::Pass::forward),
                   4.0 * 2 * 64 * (1e6 + 200e3) / 500e12 + 20e-6);
  EXPECT_DOUBLE_EQ(kTrue.seconds(1e6, 1e3, 2, 64, cost::Pass::backward),
                   10.0 * 2 * 64 * (1e6 + 200e3) / 500e12 + 20e-6);
  EXPECT_EQ(kTrue.seconds(0, 1e3, 2, 64, cost::Pass::forward), 0);
}

TEST(KernelTimes, FitsTheRateThatCallsWereMadeWith) {
  const CallRate fitted = fit_rate(calls_of(kTrue), cost::Pass::forward);
  EXPECT_NEAR(fitted.flops_per_second / kTrue.flops_per_second, 1, 1e-6);
  EXPECT_NEAR(fitted.keys_per_row / kTrue.keys_per_row, 1, 1e-6);
  EXPECT_NEAR(fitted.seconds_per_call / kTrue.seconds_per_call, 1, 1e-6);
}

TEST(KernelTimes, NoFigureIsNegative) {
  auto calls = calls_of({500e12, 0, 0});
  calls.front().seconds *= 0.9;  // the shortest is too fast for any overhead
  const CallRate fitted = fit_rate(calls, cost::Pass::forward);
  EXPECT_GT(fitted.flops_per_second, 0);
  EXPECT_GE(fitted.keys_per_row, 0);
  EXPECT_GE(fitted.seconds_per_call, 0);
}

TEST(KernelTimes, NoCallsGiveNoRate) {
  EXPECT_EQ(fit_rate({}, cost::Pass::forward).flops_per_second, 0);
}

TEST(KernelTimes, AScaledRateIsRightForCallsOfAnotherRate) {
  const auto calls = calls_of({400e12, 200, 20e-6});
  const CallRate scaled = scaled_to(kTrue, calls, cost::Pass::forward);
  EXPECT_NEAR(scaled.flops_per_second, 400e12, 1e6);
  EXPECT_EQ(scaled.seconds_per_call, kTrue.seconds_per_call);
}

TEST(KernelTimes, CallsOfAboutTheSameTimeCountMost) {
  std::vector<TimedCall> calls;
  for (const auto& [rows, rate] : {std::pair{4096.0, 600e12}, std::pair{65536.0, 500e12}}) {
    TimedCall call{rows * rows, rows, 64, 128, 0};
    call.seconds =
        CallRate{rate, 200, 20e-6}.seconds(rows * rows, rows, 64, 128, cost::Pass::forward);
    calls.push_back(call);
  }
  const auto rate_for = [&](double seconds) {
    return scaled_to(kTrue, calls, cost::Pass::forward, seconds).flops_per_second / 1e12;
  };
  EXPECT_NEAR(rate_for(calls[0].seconds), 600, 1);
  EXPECT_NEAR(rate_for(calls[1].seconds), 500, 1);
  EXPECT_NEAR(rate_for(0), std::sqrt(600.0 * 500), 1);
}

TEST(KernelTimes, SliceTakesWhatItsListsSayAndAFactor) {
  const cost::Platform& platform = cost::default_platform();
  const Mask mask = Mask::from_slices(2048, 2048, {{0, 2048, 0, 2048, MaskSliceType::causal}});
  const cost::HeadShape shape{64, 8, 128, 2};
  const SliceTimes times(platform, 1, 2);
  const double forward = slice::estimate_forward(mask, shape, platform).seconds;
  EXPECT_EQ(times.seconds(mask, shape, cost::Pass::forward), forward);
  EXPECT_EQ(times.seconds(mask, shape, cost::Pass::forward), forward);  // as it is remembered
  EXPECT_EQ(times.seconds(mask, shape, cost::Pass::backward),
            2 * slice::estimate_backward(mask, shape, platform).seconds);
  EXPECT_LT(times.seconds(mask, {32, 8, 128, 2}, cost::Pass::forward), forward);
  EXPECT_EQ(times.seconds(Mask::from_slices(8, 8, {}), shape, cost::Pass::forward), 0);
}

TEST(KernelTimes, LongRunsAreSlowedDown) {
  const SliceTimes times(cost::default_platform());
  const cost::PowerLimit& power = cost::default_platform().call.forward.power;
  EXPECT_NEAR(times.slowed(1e-5, cost::Pass::forward), 1e-5, 1e-10);
  EXPECT_DOUBLE_EQ(power.reached(power.slowed_seconds), 0.5);
  EXPECT_DOUBLE_EQ(times.slowed(power.slowed_seconds, cost::Pass::forward),
                   power.slowed_seconds * (1 + power.slowed_share / 2));
  EXPECT_NEAR(times.slowed(10, cost::Pass::forward), 10 * (1 + power.slowed_share), 1e-4);
  EXPECT_DOUBLE_EQ(times.slowdown(0, cost::Pass::forward), 1);
}

TEST(KernelTimes, TheClockFallsWhereSmsAreBusy) {
  const SliceTimes times(cost::default_platform());
  const double share = cost::default_platform().call.forward.power.slowed_share;
  const auto slowdown = [&](double busy, double memory, double seconds) {
    return times.sustained_slowdown(busy, memory, seconds, cost::Pass::forward);
  };
  EXPECT_DOUBLE_EQ(slowdown(1, 0, 1), 1 + share);
  EXPECT_DOUBLE_EQ(slowdown(0.4, 0, 0.5), (1 + share) * std::cbrt(0.8));
  EXPECT_DOUBLE_EQ(slowdown(0.4, 0.1, 0.5), (1 + share) * std::cbrt(0.9)) << "half of the power";
  EXPECT_DOUBLE_EQ(slowdown(0.3, 0.1, 1), 1) << "the power limit is not reached";
}

/// A call that computes all the time runs at the lowest clock, one whose SMs wait half of the time
/// at full clocks.
TEST(KernelTimes, ASustainedCallSettlesAtItsClock) {
  const cost::ForwardCall& page = cost::default_platform().call.forward;
  const SliceTimes times(cost::default_platform(), 1, 2);
  EXPECT_DOUBLE_EQ(times.hidden_seconds(cost::Pass::forward), page.hidden_seconds);
  EXPECT_EQ(times.hidden_seconds(cost::Pass::backward), 0);
  const double hidden = page.hidden_seconds;
  const CallTime busy{1 + hidden, 1, 1};
  EXPECT_DOUBLE_EQ(times.sustained(busy, cost::Pass::forward), 1 + page.power.slowed_share);
  const CallTime idle{1 + hidden, 1, 0.5};
  EXPECT_DOUBLE_EQ(times.sustained(idle, cost::Pass::forward), 1);
}

}  // namespace
}  // namespace longca::simulate
