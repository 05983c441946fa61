#include "parallel/executor/cuda/cuda_lanes.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "core/cuda/error.h"
#include "core/cuda/event.h"
#include "core/error.h"

namespace longca {
namespace {

class CudaLanes : public DeviceLanes {
 public:
  CudaLanes() {
    Device::get(DeviceKind::cuda).stream();  // makes the device current in this thread
    int lowest = 0;
    int highest = 0;
    LONGCA_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
    LONGCA_CUDA(cudaStreamCreateWithPriority(&communication_, cudaStreamNonBlocking, highest));
  }
  ~CudaLanes() override {
    if (communication_ != nullptr) cudaStreamDestroy(communication_);
  }
  CudaLanes(const CudaLanes&) = delete;
  CudaLanes& operator=(const CudaLanes&) = delete;

  void begin(Stream stream) override {
    compute_ = static_cast<cudaStream_t>(stream);
    fork_join_.record(compute_);
    fork_join_.hold_up(communication_);
  }
  void end() override {
    fork_join_.record(communication_);
    fork_join_.hold_up(compute_);
  }
  Stream stream(Lane lane) override { return of(lane); }

  void mark(int op, Lane lane) override {
    const auto index = static_cast<std::size_t>(op);
    while (marks_.size() <= index) marks_.emplace_back();
    if (!marks_[index]) marks_[index] = std::make_unique<CudaEvent>();
    marks_[index]->record(of(lane));
  }
  void wait(int op, Lane lane) override {
    const auto index = static_cast<std::size_t>(op);
    LONGCA_CHECK(index < marks_.size() && marks_[index], "op {} is waited for, but not marked", op);
    marks_[index]->hold_up(of(lane));
  }

 private:
  cudaStream_t of(Lane lane) const { return lane == Lane::compute ? compute_ : communication_; }

  cudaStream_t compute_ = nullptr;  ///< the caller's stream
  cudaStream_t communication_ = nullptr;
  CudaEvent fork_join_;
  std::vector<std::unique_ptr<CudaEvent>> marks_;  ///< by op; null where nothing waits
};

class CudaLaneTimes final : public LaneTimes {
 public:
  void restart(Stream stream) override {
    ops_.clear();
    compute_ = stream;
    zero_.record(stream);
  }
  void begins(int op, Stream stream) override {
    ops_[op].computes = stream == compute_;
    ops_[op].begin.record(stream);
  }
  void ends(int op, Stream stream) override { ops_[op].end.record(stream); }
  void finish(Stream stream) override { end_.record(stream); }
  PassState state() override {
    if (end_.reached()) return PassState::ended;
    for (const auto& [op, events] : ops_) {
      if (events.computes && events.begin.reached() && !events.end.reached()) {
        return PassState::computes;
      }
    }
    return PassState::waits;
  }
  bool exchanges_end_on_host() const override { return false; }
  std::vector<OpTime> times() override {
    std::vector<OpTime> all;
    for (const auto& [op, events] : ops_) {
      events.end.wait();
      all.push_back({op, events.begin.ms_since(zero_), events.end.ms_since(zero_)});
    }
    return all;
  }

 private:
  struct Events {
    TimedCudaEvent begin, end;
    bool computes = false;
  };
  Stream compute_ = nullptr;
  TimedCudaEvent zero_, end_;
  std::map<int, Events> ops_;
};

class CudaMark final : public StreamMark {
 public:
  void record(Stream stream) override {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaError_t code = cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status);
    if (code != cudaSuccess) cudaGetLastError();  // another stream captures: the call has failed
    captured_ = captured_ || status != cudaStreamCaptureStatusNone;
    if (code == cudaSuccess && status == cudaStreamCaptureStatusNone) event_.record(stream);
  }
  void hold_up(Stream stream) override { event_.hold_up(stream); }
  bool reached() override { return event_.reached(); }
  bool is_captured() const override { return captured_; }

 private:
  TimedCudaEvent event_;
  bool captured_ = false;
};

}  // namespace

std::unique_ptr<StreamMark> make_cuda_mark() {
  return std::make_unique<CudaMark>();
}

std::unique_ptr<DeviceLanes> make_cuda_lanes() {
  return std::make_unique<CudaLanes>();
}

std::unique_ptr<LaneTimes> make_cuda_lane_times() {
  return std::make_unique<CudaLaneTimes>();
}

}  // namespace longca
