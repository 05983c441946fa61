#include <cuda_runtime_api.h>

#include "core/cuda/error.h"
#include "gpu/bench/spin.h"
#include "gpu/gpu_test.h"
#include "parallel/executor/cuda/cuda_lanes.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kLate = 20'000'000;  ///< ns

class CudaLanesTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    counter_ = Buffer(gpu().memory(), 4);
    seen_ = Buffer(gpu().memory(), 4);
    // The first launch of a kernel loads it, which waits for all streams.
    queue_spin(0, static_cast<cudaStream_t>(gpu().stream()));
    queue_count(counter_.as<int>(), static_cast<cudaStream_t>(gpu().stream()));
    look(static_cast<cudaStream_t>(gpu().stream()));
    gpu().synchronize();
    for (const Buffer* buffer : {&counter_, &seen_}) gpu().fill(buffer->data(), 0, 4);
  }
  static cudaStream_t of(DeviceLanes& lanes, Lane lane) {
    return static_cast<cudaStream_t>(lanes.stream(lane));
  }
  /// Counts up late, so that a lane that does not wait sees 0.
  void count_late(cudaStream_t stream) {
    queue_spin(kLate, stream);
    queue_count(counter_.as<int>(), stream);
  }
  void look(cudaStream_t stream) {
    LONGCA_CUDA(
        cudaMemcpyAsync(seen_.data(), counter_.data(), 4, cudaMemcpyDeviceToDevice, stream));
  }
  int seen() {
    int value = 0;
    LONGCA_CUDA(cudaDeviceSynchronize());
    gpu().copy(&value, seen_.data(), 4);
    return value;
  }

  Buffer counter_;
  Buffer seen_;
};

TEST_F(CudaLanesTest, APassBeginsAfterWhatIsQueued) {
  const auto lanes = make_cuda_lanes();
  count_late(static_cast<cudaStream_t>(gpu().stream()));
  lanes->begin(gpu().stream());
  EXPECT_EQ(lanes->stream(Lane::compute), gpu().stream());
  EXPECT_NE(lanes->stream(Lane::communication), gpu().stream());
  look(of(*lanes, Lane::communication));
  lanes->end();
  EXPECT_EQ(seen(), 1);
}

TEST_F(CudaLanesTest, APassEndsBeforeWhatIsQueuedNext) {
  const auto lanes = make_cuda_lanes();
  lanes->begin(gpu().stream());
  count_late(of(*lanes, Lane::communication));
  lanes->end();
  look(static_cast<cudaStream_t>(gpu().stream()));
  EXPECT_EQ(seen(), 1);
}

TEST_F(CudaLanesTest, AnOpWaitsForTheOneThatWasMarkedLast) {
  const auto lanes = make_cuda_lanes();
  for (int pass = 1; pass <= 3; ++pass) {
    lanes->begin(gpu().stream());
    count_late(of(*lanes, Lane::compute));
    lanes->mark(5, Lane::compute);
    lanes->wait(5, Lane::communication);
    look(of(*lanes, Lane::communication));
    lanes->end();
    EXPECT_EQ(seen(), pass);
  }
}

TEST_F(CudaLanesTest, LanesRunBesideEachOther) {
  const auto lanes = make_cuda_lanes();
  lanes->begin(gpu().stream());
  count_late(of(*lanes, Lane::compute));
  lanes->mark(0, Lane::compute);
  look(of(*lanes, Lane::communication));  // does not wait
  lanes->end();
  EXPECT_EQ(seen(), 0);
}

}  // namespace
}  // namespace longca::testing
