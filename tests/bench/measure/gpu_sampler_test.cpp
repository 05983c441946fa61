#include "bench/measure/gpu_sampler.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

namespace longca::testing {
namespace {

DeviceTrace trace_of(std::size_t points) {
  DeviceTrace trace;
  trace.t_ms.resize(points);
  std::iota(trace.t_ms.begin(), trace.t_ms.end(), 1.0);
  for (const double t : trace.t_ms) {
    trace.sm_clock_mhz.push_back(t + 1000);
    trace.power_w.push_back(t + 500);
  }
  return trace;
}

TEST(ThinnedTrace, KeepsAShortOneWhole) {
  for (const std::size_t points : {0U, 1U, 99U, 100U}) {
    EXPECT_EQ(thinned(trace_of(points), 100), trace_of(points));
  }
}

TEST(ThinnedTrace, SpreadsWhatItKeepsEvenlyUpToTheEnd) {
  const DeviceTrace thin = thinned(trace_of(1050), 100);
  ASSERT_EQ(thin.t_ms.size(), 100U);
  EXPECT_EQ(thin.t_ms.back(), 1050);
  for (std::size_t i = 0; i < thin.t_ms.size(); ++i) {
    EXPECT_EQ(thin.sm_clock_mhz[i], thin.t_ms[i] + 1000) << "points stay together";
    EXPECT_EQ(thin.power_w[i], thin.t_ms[i] + 500);
    if (i > 0) {
      EXPECT_GE(thin.t_ms[i] - thin.t_ms[i - 1], 10);
      EXPECT_LE(thin.t_ms[i] - thin.t_ms[i - 1], 11);
    }
  }
}

TEST(FreshPower, CountsReadingsOnceOneHasChanged) {
  const double idle = 123.4;
  EXPECT_EQ(fresh_power(idle, std::vector{idle, idle, 500.0, 500.0, 650.0}), 550);
  EXPECT_EQ(fresh_power(idle, std::vector{600.0, idle, 600.0}), (1200 + idle) / 3)
      << "a later reading of the same size is a reading";
}

TEST(FreshPower, IsUnknownWhereTheReadingWasNotRenewed) {
  EXPECT_EQ(fresh_power(123.4, std::vector{123.4, 123.4}), std::nullopt);
  EXPECT_EQ(fresh_power(123.4, {}), std::nullopt);
}

TEST(ThrottleNames, AreThoseOfSlowingAgainstTheGpusWill) {
  EXPECT_EQ(throttle_names(0), "");
  EXPECT_EQ(throttle_names(0x1 | 0x2 | 0x10 | 0x100), "") << "idle, or clocks that somebody set";
  EXPECT_EQ(throttle_names(0x4), "power cap");
  EXPECT_EQ(throttle_names(0x4 | 0x40 | 0x1), "power cap, hardware thermal slowdown");
}

TEST(GpuSampler, WritesNothingWithoutAGpuToSample) {
  Record record;
  GpuSampler("no such bus").finish(record);
  EXPECT_FALSE(record.trace);
  EXPECT_TRUE(record.metrics.empty());
  EXPECT_TRUE(record.notes.empty());
}

}  // namespace
}  // namespace longca::testing
