#include <gmock/gmock.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/measure/device_clock.h"
#include "bench/measure/measurement.h"
#include "core/cuda/error.h"
#include "gpu/bench/spin.h"
#include "gpu/gpu_test.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class CudaClock : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    clock = make_device_clock(DeviceKind::cuda);
    counter = Buffer(gpu().memory(), sizeof(int));
    // A kernel's code is loaded when it is first launched, which waits for the device.
    queue_spin(1, stream());
    queue_count(counter.as<int>(), stream());
    gpu().fill(counter.data(), 0, counter.bytes());
    gpu().synchronize();
    clock->begin();
  }
  static cudaStream_t stream() { return static_cast<cudaStream_t>(gpu().stream()); }
  int counted() const {
    int value = 0;
    gpu().copy(&value, counter.data(), sizeof value);
    return value;
  }
  std::function<void()> count() const {
    return [this] { queue_count(counter.as<int>(), stream()); };
  }

  std::unique_ptr<DeviceClock> clock;
  Buffer counter;
};

TEST_F(CudaClock, ReadsNoLessThanTheWorkTakes) {
  EXPECT_GE(clock->time_once([] { queue_spin(2'000'000, stream()); }), 2.0);
  for (const double ms :
       clock->time_back_to_back([] { queue_spin(500'000, stream()); }, [] {}, 40)) {
    EXPECT_GE(ms, 0.5);
  }
  EXPECT_TRUE(clock->held());
}

TEST_F(CudaClock, KeepsTheHostsTimeOut) {
  // The host takes 100 ms to queue what the device does in one.
  const double ms = clock->time_once([] {
    std::this_thread::sleep_for(100ms);
    queue_spin(1'000'000, stream());
  });
  EXPECT_GE(ms, 1.0);
  EXPECT_LT(ms, 100.0);
  EXPECT_TRUE(clock->held());
}

TEST_F(CudaClock, CallsEachOnceAndGivesASampleOfEach) {
  clock->time_once(count());
  EXPECT_EQ(counted(), 1);
  for (const int calls : {1, 15, 16, 17, 100}) {
    gpu().fill(counter.data(), 0, counter.bytes());
    EXPECT_EQ(clock
                  ->time_back_to_back(
                      count(), [] {}, calls)
                  .size(),
              static_cast<std::size_t>(calls));
    EXPECT_EQ(counted(), calls);
  }
}

TEST_F(CudaClock, ACallThatWaitsForTheDeviceIsTimedWithoutTheHold) {
  const auto waits = [] {
    queue_spin(1'000'000, stream());
    LONGCA_CUDA(cudaStreamSynchronize(stream()));
  };
  const double ms = clock->time_once(waits);
  EXPECT_GE(ms, 1.0);
  EXPECT_LT(ms, 500.0) << "the sample of the hold that gave up counts";
  EXPECT_FALSE(clock->held());
  // It is known from now on: no hold, and no second of waiting for one.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) clock->time_once(waits);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
  clock->begin();
  EXPECT_TRUE(clock->held());
  for (const double back_to_back : clock->time_back_to_back(
           waits, [] {}, 5)) {
    EXPECT_GE(back_to_back, 1.0);
    EXPECT_LT(back_to_back, 500.0);
  }
  EXPECT_FALSE(clock->held());
}

TEST_F(CudaClock, ManyLaunchesPerCallAreHeldOneCallAtATime) {
  const auto hundred = [this] {
    for (int i = 0; i < 100; ++i) count()();
  };
  EXPECT_EQ(clock
                ->time_back_to_back(
                    hundred, [] {}, 20)
                .size(),
            20U);
  EXPECT_TRUE(clock->held());
}

TEST_F(CudaClock, ACallThatThrowsLetsTheStreamGo) {
  EXPECT_THROW(clock->time_once([] { throw std::runtime_error("no"); }), std::runtime_error);
  const auto begin = std::chrono::steady_clock::now();
  gpu().synchronize();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
  EXPECT_GE(clock->time_once([] { queue_spin(100'000, stream()); }), 0.1);
  EXPECT_TRUE(clock->held());
}

TEST_F(CudaClock, SeesWorkBesideTheQueue) {
  const Buffer output(gpu().memory(), 64);
  gpu().fill(output.data(), 0xff, 64);
  const auto write = [&] { gpu().fill(output.data(), 1, 64); };
  const auto held = clock->hold_back(write, output.data(), 0.01);
  EXPECT_TRUE(held.kept);
  ASSERT_TRUE(held.ms.has_value());
  EXPECT_LT(*held.ms, 5);  // without the time that the queue was held back

  gpu().fill(output.data(), 0xff, 64);
  const auto write_beside = [&] {
    LONGCA_CUDA(cudaMemsetAsync(output.data(), 1, 64, cudaStreamPerThread));
  };
  EXPECT_FALSE(clock->hold_back(write_beside, output.data(), 0.01).kept);
  // One that waits for the device cannot be told.
  gpu().fill(output.data(), 0xff, 64);
  const auto write_and_wait = [&] {
    write();
    gpu().synchronize();
  };
  const auto waited = clock->hold_back(write_and_wait, output.data(), 0.01);
  EXPECT_TRUE(waited.kept);
  EXPECT_FALSE(waited.ms.has_value());
  EXPECT_GE(clock->time_once([] { queue_spin(100'000, stream()); }), 0.1);
  EXPECT_TRUE(clock->held());
}

TEST_F(CudaClock, FlushingIsNotTheCasesMemory) {
  const std::int64_t before = gpu().memory().bytes_in_use();
  clock->flush_caches();
  gpu().synchronize();
  EXPECT_EQ(gpu().memory().bytes_in_use(), before);
}

TEST_F(CudaClock, AGraphReplaysWhatTheCallQueues) {
  const auto twice = [this] {
    count()();
    count()();
  };
  const auto replay = clock->as_graph(twice);
  EXPECT_EQ(counted(), 0) << "capturing runs nothing";
  clock->time_once(replay);
  clock->time_back_to_back(
      replay, [] {}, 3);
  EXPECT_EQ(counted(), 8);
}

void expect_refused(DeviceClock& clock, const std::function<void()>& call, const char* part) {
  try {
    clock.as_graph(call);
    FAIL() << "captured, against: " << part;
  } catch (const GraphRefused& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be captured in a CUDA graph: "));
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST_F(CudaClock, WhatACaptureForbidsIsRefusedWithTheReason) {
  expect_refused(
      *clock, [] { LONGCA_CUDA(cudaStreamSynchronize(stream())); },
      "cudaErrorStreamCaptureUnsupported");
  expect_refused(
      *clock,
      [] {
        void* memory = nullptr;
        LONGCA_CUDA(cudaMalloc(&memory, 1 << 20));
        LONGCA_CUDA(cudaFree(memory));
      },
      "cudaErrorStreamCaptureUnsupported");
  // A call that nobody looked at the result of.
  expect_refused(
      *clock, [] { cudaStreamSynchronize(stream()); }, "cudaErrorStreamCaptureInvalidated");
  expect_refused(
      *clock, [] {}, "stream of its own");
  expect_refused(
      *clock, [] { throw std::runtime_error("not today"); }, "not today");
  // The stream is as it was.
  clock->time_once(count());
  EXPECT_EQ(counted(), 1);
}

TEST_F(CudaClock, MeasuresInEveryMode) {
  for (const MeasureMode mode : {MeasureMode::burst, MeasureMode::sustained, MeasureMode::graph}) {
    std::function<void()> call = [] { queue_spin(1'000'000, stream()); };
    if (mode == MeasureMode::graph) call = clock->as_graph(call);
    const Measurement measured =
        measure(*clock, {.call = call}, {.mode = mode, .time_limit_s = 0.2});
    EXPECT_GE(measured.median_ms, 1.0);
    EXPECT_TRUE(measured.held);
    EXPECT_NE(measured.stop, Stop::not_yet);
  }
}

}  // namespace
}  // namespace longca::testing
