#include "bench/measure/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "bench/expect_input_error.h"

namespace longca::testing {
namespace {

/// A device whose calls take the times that the test sets, and which logs its calls.
class FakeClock : public DeviceClock {
 public:
  void begin() override { log.clear(); }
  void flush_caches() override { log += 'f'; }
  double time_once(const std::function<void()>& call) override {
    call();
    return next_ms;
  }
  std::vector<double> time_back_to_back(const std::function<void()>& call, int count) override {
    for (int i = 0; i < count; ++i) call();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    log += 'b';
    return std::vector<double>(static_cast<std::size_t>(count), next_ms);
  }

  bool held() const override { return holds; }

  std::string log;
  double next_ms = 2.0;
  bool holds = true;
};

struct Trial {
  FakeClock clock;
  Measurement run(const MeasureOptions& options) {
    return measure(
        clock, [this] { clock.log += 'c'; }, [this] { clock.log += 'p'; }, options);
  }
};

TEST(Measure, ABurstPreparesAndFlushesBeforeEveryCall) {
  Trial trial;
  const Measurement result = trial.run({.cool_down_ms = 0, .warmed_s = 1.0});
  EXPECT_EQ(trial.clock.log, "pfcpfcpfcpfcpfcpfc");
  EXPECT_EQ(result.stop, Stop::converged);
  EXPECT_EQ(result.samples_ms, std::vector<double>(6, 2.0));
  EXPECT_EQ(result.median_ms, 2.0);
}

TEST(Measure, AGraphIsMeasuredAsABurst) {
  Trial trial;
  const Measurement result =
      trial.run({.mode = MeasureMode::graph, .cool_down_ms = 0, .warmed_s = 1.0});
  EXPECT_EQ(trial.clock.log, "pfcpfcpfcpfcpfcpfc");
  EXPECT_EQ(result.stop, Stop::converged);
}

TEST(Measure, SaysWhetherLaunchTimeWasKeptOut) {
  Trial trial;
  EXPECT_TRUE(trial.run({.cool_down_ms = 0, .warmed_s = 1.0}).held);
  trial.clock.holds = false;
  EXPECT_FALSE(trial.run({.cool_down_ms = 0, .warmed_s = 1.0}).held);
}

TEST(Measure, WhatRanBeforeCountsAsWarmUp) {
  Trial cold;
  cold.run({.cool_down_ms = 0, .warmed_s = 0.0});
  // The fake's calls take no time of this clock, so 0.1 s of warm-up are many.
  EXPECT_GT(cold.clock.log.size(), 18U * 2);
}

TEST(Measure, ARepetitionBeforeIsWarmUpOrIfItIsSlowASample) {
  Trial quick;
  const Measurement warmed = quick.run({.cool_down_ms = 0, .repeated_ms = 100.0});
  EXPECT_EQ(quick.clock.log, "pfcpfcpfcpfcpfcpfc");
  EXPECT_EQ(warmed.samples_ms, std::vector<double>(6, 2.0));

  Trial slow;
  slow.clock.next_ms = 3000;
  const Measurement result =
      slow.run({.time_limit_s = 0.1, .cool_down_ms = 0, .repeated_ms = 2900.0});
  EXPECT_EQ(slow.clock.log, "pfc");
  EXPECT_EQ(result.samples_ms, (std::vector<double>{2900, 3000}));
  EXPECT_EQ(result.stop, Stop::time_limit);

  Trial medium;
  medium.clock.next_ms = 110;
  EXPECT_EQ(
      medium.run({.time_limit_s = 0.1, .cool_down_ms = 0, .repeated_ms = 100.0}).samples_ms.front(),
      100.0);

  Trial graph;  // the repetition before was no replay
  graph.clock.next_ms = 3000;
  EXPECT_THAT(graph
                  .run({.mode = MeasureMode::graph,
                        .time_limit_s = 1e-9,
                        .cool_down_ms = 0,
                        .repeated_ms = 2900.0})
                  .samples_ms,
              ::testing::Each(3000.0));
}

TEST(Measure, ThePauseIsNotTimed) {
  Trial trial;
  const Measurement result = trial.run({.cool_down_ms = 5, .warmed_s = 1.0});
  EXPECT_EQ(result.median_ms, 2.0);
}

TEST(Measure, StopsBeforeTheCellIsKilled) {
  Trial trial;
  trial.clock.next_ms = 5000;
  const Measurement result = trial.run({.cool_down_ms = 0, .time_left_s = 4, .warmed_s = 1.0});
  EXPECT_EQ(result.samples_ms.size(), 1U);
  EXPECT_EQ(result.stop, Stop::time_limit);
  EXPECT_FALSE(result.interval);
}

TEST(Measure, SustainedRunsBackToBackForASecond) {
  Trial trial;
  trial.clock.next_ms = 10.0;
  MeasureOptions options;
  options.mode = MeasureMode::sustained;
  options.time_limit_s = 0.1;  // shorter than the second that it takes at least
  options.warmed_s = 1.0;
  const Measurement result = trial.run(options);
  EXPECT_EQ(trial.clock.log.find('f'), std::string::npos);
  EXPECT_EQ(trial.clock.log.find('p'), std::string::npos);
  EXPECT_EQ(result.stop, Stop::converged);
  EXPECT_GT(result.samples_ms.size(), 6U);
}

TEST(Measure, UnknownModesAreRefused) {
  expect_input_error([] { parse_measure_mode("bursts"); }, "unknown mode 'bursts'");
}

TEST(CpuClock, TimesTheCallAlone) {
  const auto clock = make_device_clock(DeviceKind::cpu);
  clock->flush_caches();
  int calls = 0;
  EXPECT_GE(clock->time_once([&] { ++calls; }), 0.0);
  const auto samples = clock->time_back_to_back([&] { ++calls; }, 4);
  EXPECT_EQ(samples.size(), 4U);
  EXPECT_EQ(calls, 5);
}

TEST(CpuClock, HasNoGraphs) {
  const auto clock = make_device_clock(DeviceKind::cpu);
  try {
    clock->as_graph([] {});
    FAIL() << "the CPU replays graphs";
  } catch (const GraphRefused& error) {
    EXPECT_STREQ(error.what(), "mode graph replays a CUDA graph, which the CPU does not have");
  }
}

TEST(DeviceClock, OfADeviceThatIsNotThereIsRefusedWithTheReason) {
  const Support& gpu = Device::available(DeviceKind::cuda);
  if (gpu.ok()) GTEST_SKIP() << "there is a GPU";
  expect_input_error([] { make_device_clock(DeviceKind::cuda); }, gpu.reason);
}

}  // namespace
}  // namespace longca::testing
