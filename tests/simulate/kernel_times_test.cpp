#include "simulate/kernel_times.h"

#include <gtest/gtest.h>

#include <cmath>

namespace longca::simulate {
namespace {

constexpr CallRate kTrue{500e12, 200, 20e-6};

std::vector<TimedCall> calls_of(const CallRate& rate, double factor = 1) {
  std::vector<TimedCall> calls;
  for (const double rows : {2048.0, 8192.0, 32768.0}) {
    for (const double keys : {500.0, rows / 2}) {
      TimedCall call{rows * keys, rows, 64, 128, 0};
      call.seconds = factor * rate.seconds(call.area, call.rows, 64, 128, cost::Pass::forward);
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

TEST(KernelTimes, AScaledRateIsRightForItsCalls) {
  const auto calls = calls_of(kTrue, 1.3);
  const CallRate scaled = scaled_to(kTrue, calls, cost::Pass::forward);
  for (const TimedCall& call : calls) {
    EXPECT_NEAR(scaled.seconds(call.area, call.rows, 64, 128, cost::Pass::forward) / call.seconds, 1,
                1e-9);
  }
}

}  // namespace
}  // namespace longca::simulate
