#include "bench/ranks/rank_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "bench/measure/measurement.h"
#include "dist/dist_test.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

/// A clock whose calls take what this rank says.
class OwnClock : public DeviceClock {
 public:
  explicit OwnClock(int rank) : rank_(rank) {}
  void begin() override { ++begun; }
  void flush_caches() override {}
  double time_once(const std::function<void()>& call) override {
    line_up();
    call();
    ++calls;
    // The slowest rank is another one each time.
    return 10.0 + (calls % 4 == rank_ ? 5.0 : rank_ * 0.5);
  }
  std::vector<double> time_back_to_back(const std::function<void()>& call,
                                        const std::function<void()>& between, int count) override {
    std::vector<double> times;
    for (int i = 0; i < count; ++i) {
      if (i > 0) between();
      times.push_back(time_once(call));
    }
    return times;
  }
  bool held() const override { return rank_ != lost_hold; }
  bool changed_since() override { return rank_ == goes_on && !watched().empty(); }
  double now_s() override { return rank_ * 1000.0 + calls; }

  int begun = 0;
  int calls = 0;
  int lost_hold = -1;
  int goes_on = -1;

 private:
  int rank_;
};

class RankClockTest {
 public:
  RankClockTest()
      : communicator_(world().make_communicator()),
        own(world().control().rank()),
        clock(own, Device::get(DeviceKind::cpu), *communicator_, world().control()) {}

 private:
  std::unique_ptr<Communicator> communicator_;

 public:
  OwnClock own;
  RankClock clock;
};

TEST(RankClock, ACallTakesAsLongAsOnItsSlowestRank) {
  RankClockTest test;
  EXPECT_EQ(test.clock.time_once([] {}), 15.0);
  EXPECT_THAT(test.clock.time_back_to_back([] {}, [] {}, 3), ElementsAre(15.0, 15.0, 15.0));
}

TEST(RankClock, WhatOneRankSeesGoOnGoesOnForAll) {
  RankClockTest test;
  test.own.goes_on = 1;
  EXPECT_FALSE(test.clock.changed_since()) << "nothing is watched";
  const float result = 0;
  test.clock.watch({std::as_bytes(std::span(&result, 1))});
  EXPECT_TRUE(test.clock.changed_since());
  test.own.goes_on = -1;
  EXPECT_FALSE(test.clock.changed_since());
}

TEST(RankClock, EachRankKeepsItsOwnMedian) {
  RankClockTest test;
  const int rank = world().control().rank();
  test.clock.time_once([] {});
  test.clock.time_back_to_back([] {}, [] {}, 3);
  EXPECT_EQ(test.clock.own_median_ms(4), 10.0 + rank * 0.5);
  test.own.calls = rank - 1;
  test.clock.time_once([] {});
  EXPECT_EQ(test.clock.own_median_ms(1), 15.0);
}

TEST(RankClock, TimesOfASecondCallAreASeriesOfTheirOwn) {
  RankClockTest test;
  const int rank = world().control().rank();
  test.clock.begin_series(DeviceClock::Series::beside);
  test.own.calls = rank - 1;
  test.clock.time_once([] {});
  test.clock.begin_series(DeviceClock::Series::call);
  test.own.calls = 0;
  test.clock.time_once([] {});
  EXPECT_EQ(test.clock.own_median_ms(1, DeviceClock::Series::beside), 15.0);
  EXPECT_EQ(test.clock.own_median_ms(1), rank == 1 ? 15.0 : 10.0 + rank * 0.5);
}

TEST(RankClock, AllRanksReadTheClockOfRankZero) {
  RankClockTest test;
  test.own.calls = world().control().rank() + 3;
  EXPECT_EQ(test.clock.now_s(), 3.0);
}

TEST(RankClock, AHoldThatOneRankLostIsLostForAll) {
  RankClockTest test;
  EXPECT_TRUE(test.clock.held());
  test.own.lost_hold = 2;
  EXPECT_FALSE(test.clock.held());
}

TEST(RankClock, RanksOfDifferentSpeedMeasureTheSameRepetitions) {
  for (const MeasureMode mode : {MeasureMode::burst, MeasureMode::sustained}) {
    const auto communicator = world().make_communicator();
    const auto own = make_device_clock(DeviceKind::cpu);
    RankClock clock(*own, Device::get(DeviceKind::cpu), *communicator, world().control());
    int calls = 0;
    const Measurement measured = measure(
        clock,
        {.call =
             [&] {
               ++calls;
               std::this_thread::sleep_for(std::chrono::milliseconds(1 + world().control().rank()));
             }},
        {.mode = mode, .time_limit_s = 0.2, .cool_down_ms = world().control().rank() * 0.5});
    const auto count = static_cast<double>(measured.samples_ms.size());
    EXPECT_EQ(world().control().max(count), count);
    EXPECT_EQ(world().control().max(calls), calls);
    EXPECT_EQ(world().control().max(measured.median_ms), measured.median_ms);
    EXPECT_EQ(world().control().broadcast(measured.median_ms), measured.median_ms);
  }
}

}  // namespace
}  // namespace longca::testing
