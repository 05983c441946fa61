#pragma once

#include <cuda_runtime_api.h>

#include "core/cuda/error.h"

namespace longca {

/// A place in a stream that others wait for; it keeps no time, which makes it cheap.
class CudaEvent {
 public:
  CudaEvent() { LONGCA_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~CudaEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(cudaStream_t stream) const { LONGCA_CUDA(cudaEventRecord(event_, stream)); }
  /// What is queued on `stream` from now on runs after what was recorded last.
  void hold_up(cudaStream_t stream) const { LONGCA_CUDA(cudaStreamWaitEvent(stream, event_)); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace longca
