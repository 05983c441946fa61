#include "bench/measure/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

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
  std::vector<double> time_back_to_back(const std::function<void()>& call,
                                        const std::function<void()>& between, int count) override {
    for (int i = 0; i < count; ++i) {
      if (i > 0) between();
      call();
    }
    if (at_s) *at_s += batch_ms / 1e3;
    std::this_thread::sleep_for(std::chrono::milliseconds(at_s ? 0 : 10));
    log += 'b';
    lengths.push_back(count);
    return std::vector<double>(static_cast<std::size_t>(count), next_ms);
  }

  void begin_series(Series of) override { series = of; }
  bool held() const override { return holds; }
  bool changed_since() override { return goes_on; }
  double now_s() override { return at_s ? *at_s : DeviceClock::now_s(); }

  std::string log;
  std::vector<int> lengths;  ///< of the batches
  Series series = Series::call;
  double next_ms = 2.0;
  bool holds = true;
  bool goes_on = false;        ///< the work of a call, behind its time
  std::optional<double> at_s;  ///< the time, if the test sets it
  double batch_ms = 0;         ///< that a batch takes of it
};

struct Trial {
  FakeClock clock;
  Measurement run(const MeasureOptions& options) {
    return measure(clock,
                   {.call = [this] { clock.log += 'c'; },
                    .prepare = [this] { clock.log += 'p'; },
                    .between = [this] { clock.log += '-'; },
                    .check =
                        [this] {
                          clock.log += 'k';
                          std::this_thread::sleep_for(check_time);
                          return --checks_to_pass > 0;
                        },
                    .after_check = [this] { clock.log += 'a'; }},
                   options);
  }

  int checks_to_pass = 1'000'000;
  std::chrono::milliseconds check_time{0};
};

/// Of a burst: prepared, flushed, called, checked, and what follows a check.
std::string repetitions(int count) {
  std::string log;
  for (int i = 0; i < count; ++i) log += "pfcka";
  return log;
}

TEST(Measure, ABurstPreparesAndFlushesBeforeEveryCallAndChecksAfterIt) {
  Trial trial;
  const Measurement result = trial.run({.cool_down_ms = 0, .warmed_s = 1.0});
  EXPECT_EQ(trial.clock.log, repetitions(7));
  EXPECT_EQ(result.stop, Stop::converged);
  EXPECT_EQ(result.samples_ms, std::vector<double>(7, 2.0));
  EXPECT_EQ(result.median_ms, 2.0);
}

TEST(Measure, ABurstThatIsOutOfTimeHasTimedAndCheckedSevenCalls) {
  Trial trial;
  const Measurement result = trial.run({.time_limit_s = 1e-9, .cool_down_ms = 0, .warmed_s = 1.0});
  EXPECT_EQ(result.samples_ms.size(), 7U);
  EXPECT_EQ(trial.clock.log, repetitions(7));
  Trial wrong;
  wrong.checks_to_pass = 7;
  EXPECT_FALSE(wrong.run({.time_limit_s = 1e-9, .cool_down_ms = 0, .warmed_s = 1.0}).checked);
  EXPECT_EQ(wrong.clock.log + 'a', repetitions(7));
}

TEST(Measure, AGraphIsMeasuredAsABurst) {
  Trial trial;
  const Measurement result =
      trial.run({.mode = MeasureMode::graph, .cool_down_ms = 0, .warmed_s = 1.0});
  EXPECT_EQ(trial.clock.log, repetitions(7));
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
  EXPECT_GT(cold.clock.log.size(), repetitions(4 * 6).size());
}

TEST(Measure, ARepetitionBeforeIsWarmUpOrIfItIsSlowASample) {
  Trial quick;
  const Measurement warmed = quick.run({.cool_down_ms = 0, .repeated_ms = 100.0});
  EXPECT_EQ(quick.clock.log, repetitions(7));
  EXPECT_EQ(warmed.samples_ms, std::vector<double>(7, 2.0));

  Trial slow;
  slow.clock.next_ms = 3000;
  const Measurement result = slow.run(
      {.time_limit_s = 0.1, .sample_budget_s = 2, .cool_down_ms = 0, .repeated_ms = 2900.0});
  EXPECT_EQ(slow.clock.log, repetitions(1));
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

TEST(Measure, TimeOfChecksIsOfTheCellNotOfTheMeasurement) {
  for (const double warmed_s : {0.0, 1.0}) {
    FakeClock clock;
    clock.at_s = 0.0;
    const auto call = [&] { *clock.at_s += 0.05; };
    const auto check = [&] {
      *clock.at_s += 10;
      return true;
    };
    MeasureOptions options{.cool_down_ms = 0, .warmed_s = warmed_s};
    const Measurement all = measure(clock, {.call = call, .check = check}, options);
    EXPECT_EQ(all.samples_ms.size(), 7U);
    EXPECT_EQ(all.stop, Stop::converged);

    options.time_left_s = 15;
    const Measurement cut = measure(clock, {.call = call, .check = check}, options);
    EXPECT_EQ(cut.samples_ms.size(), 2U);
    EXPECT_EQ(cut.stop, Stop::time_limit);
  }
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
  EXPECT_EQ(result.stop, Stop::converged);
  EXPECT_GT(result.samples_ms.size(), 6U);
}

TEST(Measure, ManyBatchesAndSomeSingleCallsAreCheckedHoweverSlowTheMachine) {
  Trial trial;
  trial.clock.next_ms = 20.0;
  trial.clock.at_s = 0.0;
  trial.clock.batch_ms = 600;  // another process takes the machine
  trial.run({.mode = MeasureMode::sustained, .time_limit_s = 0.01, .warmed_s = 1.0});
  EXPECT_EQ(trial.clock.lengths.size(), 12U);
  EXPECT_EQ(trial.clock.log.substr(0, 26), "pckapckapckapckapckapckapc");

  Trial long_calls;
  long_calls.clock.next_ms = 60.0;
  long_calls.clock.at_s = 0.0;
  long_calls.clock.batch_ms = 600;
  long_calls.run({.mode = MeasureMode::sustained, .time_limit_s = 0.01, .warmed_s = 1.0});
  EXPECT_THAT(long_calls.clock.lengths, ::testing::Each(1));
}

TEST(Measure, BatchesArePreparedCheckedAndOfLengthsThatASeedDraws) {
  const auto lengths_of = [](std::uint64_t seed) {
    Trial trial;
    trial.clock.next_ms = 5.0;
    const Measurement result = trial.run({.mode = MeasureMode::sustained, .seed = seed});
    std::string log = "pcka";  // the warm-up's
    while (log.size() < 20 * 4) log += "pcka";
    std::size_t calls = 0;
    for (const int length : trial.clock.lengths) {
      log += "pc";
      for (int i = 1; i < length; ++i) log += "-c";
      log += "bka";
      calls += static_cast<std::size_t>(length);
    }
    EXPECT_EQ(trial.clock.log, log);
    EXPECT_EQ(result.samples_ms.size(), calls);
    EXPECT_THAT(trial.clock.lengths,
                ::testing::Each(::testing::AllOf(::testing::Ge(1), ::testing::Le(10))));
    return trial.clock.lengths;
  };
  EXPECT_NE(lengths_of(1), lengths_of(2));
}

TEST(Measure, EndsWhereACheckFails) {
  for (const MeasureMode mode : {MeasureMode::burst, MeasureMode::sustained, MeasureMode::graph}) {
    for (const double warmed_s : {0.0, 1.0}) {
      Trial trial;
      trial.checks_to_pass = 3;
      const Measurement result = trial.run({.mode = mode, .cool_down_ms = 0, .warmed_s = warmed_s});
      EXPECT_FALSE(result.checked);
      EXPECT_TRUE(result.samples_ms.empty());
      EXPECT_EQ(std::ranges::count(trial.clock.log, 'k'), 3);
      EXPECT_EQ(trial.clock.log.back(), 'k');
    }
  }
}

/// What a log has between the end of the check of this number and the next repetition.
std::string behind_check(const std::string& log, int number) {
  std::size_t end = log.find('a');
  for (; number > 1 && end != std::string::npos; --number) end = log.find('a', end + 1);
  const std::size_t next = end == std::string::npos ? end : log.find('p', end);
  if (next == std::string::npos) return "not there";
  return log.substr(end + 1, next - end - 1);
}

TEST(Measure, AfterALongCheckTheDeviceIsKeptAsBusyAsByItsRepetitions) {
  Trial trial;
  trial.check_time = std::chrono::milliseconds(20);
  const Measurement m = trial.run({.cool_down_ms = 0, .warmed_s = 1.0});
  const std::string between = behind_check(trial.clock.log, 6);
  EXPECT_GE(between.size(), 1U);
  EXPECT_EQ(between, std::string(between.size(), 'c'));
  const auto checks = std::ranges::count(trial.clock.log, 'k');
  EXPECT_EQ(std::ssize(m.samples_ms), checks - 6) << "cooler ones are no samples";
}

/// A kernel that skips its work in every second or third call would otherwise do so only where no
/// call is checked.
TEST(Measure, CallsAreCheckedInARowBeforeOthersRunBetweenThem) {
  for (const auto mode : {MeasureMode::burst, MeasureMode::sustained}) {
    Trial trial;
    trial.check_time = std::chrono::milliseconds(20);
    trial.run({.mode = mode, .time_limit_s = 0.01, .cool_down_ms = 0, .warmed_s = 1.0});
    for (int number = 1; number < 6; ++number) {
      EXPECT_EQ(behind_check(trial.clock.log, number), "") << number;
    }
  }
}

/// Nothing rests for long beside a long call, and few of them are made.
TEST(Measure, NothingRunsBetweenLongCalls) {
  FakeClock clock;
  clock.next_ms = 300;
  clock.at_s = 0.0;
  const Measurement m = measure(clock,
                                {.call = [&] { clock.log += 'c', *clock.at_s += 0.3; },
                                 .check = [&] { return (*clock.at_s += 0.1) > 0; },
                                 .beside = [&] { clock.log += 'B', *clock.at_s += 0.3; }},
                                {.time_limit_s = 0.1, .warmed_s = 1.0});
  EXPECT_EQ(m.samples_ms.size(), 7U);
  EXPECT_THAT(clock.log, ::testing::StartsWith("fcfcfcfBfcfB"));
}

TEST(Measure, ASecondCallIsTimedInTurnsAndNotChecked) {
  for (const auto mode : {MeasureMode::burst, MeasureMode::sustained}) {
    FakeClock clock;
    clock.next_ms = 2.0;
    int checks = 0;
    const Measurement m = measure(clock,
                                  {.call = [&] { clock.log += 'c'; },
                                   .check = [&] { return ++checks > 0; },
                                   .beside =
                                       [&] {
                                         clock.log += 'B';
                                         EXPECT_EQ(clock.series, DeviceClock::Series::beside);
                                       }},
                                  {.mode = mode, .time_limit_s = 0.01, .warmed_s = 1.0});
    EXPECT_EQ(m.beside_ms.size(), m.samples_ms.size());
    EXPECT_EQ(clock.series, DeviceClock::Series::call);
    if (mode == MeasureMode::burst) {
      EXPECT_THAT(clock.log, ::testing::MatchesRegex("fcfcfcfcfcfc(fcfB)+"));
      EXPECT_EQ(static_cast<std::size_t>(checks), m.samples_ms.size() + 6);
    }
  }
}

TEST(Measure, TheTimeOfTheSecondCallIsNotThatOfTheMeasurement) {
  FakeClock clock;
  clock.at_s = 0.0;
  double ms = 1.0;
  const Measurement m =
      measure(clock,
              {.call = [&] { clock.next_ms = ms = 3.0 - ms, *clock.at_s += clock.next_ms / 1e3; },
               .beside = [&] { *clock.at_s += 1.0; }},
              {.time_limit_s = 0.1, .warmed_s = 1.0});
  EXPECT_GT(m.samples_ms.size(), 60U) << "of 1.5 ms on average, in 0.1 s";
}

TEST(Measure, SettlesWithCallsBeforeTheFirstSample) {
  FakeClock clock;
  clock.at_s = 0.0;
  int calls = 0;
  const Measurement m = measure(clock, {.call = [&] { ++calls, *clock.at_s += 0.01; }},
                                {.time_limit_s = 1.0, .warmed_s = 1.0, .settle_s = 0.2});
  EXPECT_NEAR(calls - static_cast<int>(m.samples_ms.size()), 20, 1);
}

TEST(Measure, EndsWhereACallGoesOnBehindItsTime) {
  for (const MeasureMode mode : {MeasureMode::burst, MeasureMode::sustained, MeasureMode::graph}) {
    Trial trial;
    trial.clock.goes_on = true;
    const Measurement result = trial.run({.mode = mode, .cool_down_ms = 0});
    EXPECT_FALSE(result.checked);
    EXPECT_TRUE(result.goes_on);
    EXPECT_EQ(std::ranges::count(trial.clock.log, 'c'), 1);
    EXPECT_EQ(trial.clock.log.back(), 'k') << "it may come while the results are checked";
  }
}

TEST(Measure, UnknownModesAreRefused) {
  expect_input_error([] { parse_measure_mode("bursts"); },
                     "unknown mode 'bursts' (did you mean 'burst'?)");
}

TEST(CpuClock, TimesTheCallAlone) {
  const auto clock = make_device_clock(DeviceKind::cpu);
  clock->flush_caches();
  int calls = 0;
  EXPECT_GE(clock->time_once([&] { ++calls; }), 0.0);
  const auto samples = clock->time_back_to_back([&] { ++calls; }, [] {}, 4);
  EXPECT_EQ(samples.size(), 4U);
  EXPECT_EQ(calls, 5);
}

TEST(CpuClock, DoesTheRestBetweenTwoCalls) {
  const auto clock = make_device_clock(DeviceKind::cpu);
  std::string log;
  clock->time_back_to_back([&] { log += 'c'; }, [&] { log += '-'; }, 3);
  EXPECT_EQ(log, "c-c-c");
}

TEST(CpuClock, SeesWhatIsWrittenAfterTheLastCall) {
  const auto clock = make_device_clock(DeviceKind::cpu);
  std::vector<float> a(5), b(100);
  clock->watch({std::as_bytes(std::span(a)), std::as_bytes(std::span(b))});
  clock->time_once([&] { a[1] = 1; });
  EXPECT_FALSE(clock->changed_since());
  b[99] = 1;
  EXPECT_TRUE(clock->changed_since());
  clock->time_back_to_back([&] { ++a[4]; }, [&] { ++b[0]; }, 3);
  EXPECT_FALSE(clock->changed_since());
  a[4] = -a[4];
  EXPECT_TRUE(clock->changed_since());
  a[4] = -a[4];
  EXPECT_FALSE(clock->changed_since());
}

TEST(CpuClock, FlushesAsManyBytesAsItIsTold) {
  constexpr const char* kName = "LONGCA_CACHE_FLUSH_BYTES";
  const char* before = std::getenv(kName);
  const std::string kept = before != nullptr ? before : "";
  ::setenv(kName, "3M", 1);
  EXPECT_EQ(cache_flush_bytes(), 3 << 20);
  ::setenv(kName, "1024M", 1);
  expect_input_error([] { cache_flush_bytes(); },
                     "LONGCA_CACHE_FLUSH_BYTES is 1073741824; it must be 0 to 536870912");
  ::setenv(kName, "much", 1);
  expect_input_error([] { cache_flush_bytes(); }, "LONGCA_CACHE_FLUSH_BYTES 'much' is not");
  setenv(kName, "-1", 1);
  expect_input_error([] { cache_flush_bytes(); },
                     "LONGCA_CACHE_FLUSH_BYTES is -1; it must be 0 to");
  ::unsetenv(kName);
  EXPECT_GT(cache_flush_bytes(), 0);
  if (before != nullptr) ::setenv(kName, kept.c_str(), 1);
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
