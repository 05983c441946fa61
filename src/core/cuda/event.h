#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <utility>

#include "core/cuda/error.h"
#include "core/device.h"

namespace longca {

/// A point in a stream that other streams wait for. Records no time, which makes it cheap.
class CudaEvent {
 public:
  CudaEvent() : CudaEvent(cudaEventDisableTiming) {}
  ~CudaEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(Stream stream) const {
    LONGCA_CUDA(cudaEventRecord(event_, static_cast<cudaStream_t>(stream)));
  }
  /// What is queued on `stream` from now on runs after what was recorded last.
  void hold_up(Stream stream) const {
    LONGCA_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_));
  }

 protected:
  explicit CudaEvent(unsigned flags) { LONGCA_CUDA(cudaEventCreateWithFlags(&event_, flags)); }
  cudaEvent_t event_ = nullptr;
};

/// A point in a stream with the device's time.
class TimedCudaEvent : public CudaEvent {
 public:
  TimedCudaEvent() : CudaEvent(cudaEventDefault) {}

  /// Whether the device has come to it.
  bool reached() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code == cudaSuccess) return true;
    if (code != cudaErrorNotReady) LONGCA_CUDA(code);
    cudaGetLastError();  // keeps the next check of a launch from finding it
    return false;
  }
  /// Blocks until the device has come to it.
  void wait() const { LONGCA_CUDA(cudaEventSynchronize(event_)); }
  /// ms from `earlier` to this event, to the nanosecond (a device's clock ticks in 32 of them, and
  /// a record of thousands of times is half as long); the device has come to both.
  double ms_since(const TimedCudaEvent& earlier) const {
    float ms = 0;
    LONGCA_CUDA(cudaEventElapsedTime(&ms, earlier.event_, event_));
    return std::round(static_cast<double>(ms) * 1e6) / 1e6;
  }
};

}  // namespace longca
