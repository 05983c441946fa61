#include "parallel/executor/cuda/cuda_lane_times.h"

#include <cuda_runtime_api.h>

#include <map>

#include "core/cuda/error.h"

namespace longca {
namespace {

class TimedEvent {
 public:
  TimedEvent() { LONGCA_CUDA(cudaEventCreate(&event_)); }
  ~TimedEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(Stream stream) const {
    LONGCA_CUDA(cudaEventRecord(event_, static_cast<cudaStream_t>(stream)));
  }
  bool reached() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaSuccess) return true;
    if (code != cudaErrorNotReady) LONGCA_CUDA(code);
    cudaGetLastError();  // not an error to be found by the next look at a launch
    return false;
  }
  double ms_since(const TimedEvent& earlier) const {
    LONGCA_CUDA(cudaEventSynchronize(event_));
    float ms = 0;
    LONGCA_CUDA(cudaEventElapsedTime(&ms, earlier.event_, event_));
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
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
      all.push_back({op, events.begin.ms_since(zero_), events.end.ms_since(zero_)});
    }
    return all;
  }

 private:
  struct Events {
    TimedEvent begin, end;
    bool computes = false;
  };
  Stream compute_ = nullptr;
  TimedEvent zero_, end_;
  std::map<int, Events> ops_;
};

}  // namespace

std::unique_ptr<LaneTimes> make_cuda_lane_times() {
  return std::make_unique<CudaLaneTimes>();
}

}  // namespace longca
