#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace longca {

/// A CUDA call that failed. A sticky error (an illegal address, say) leaves the context unusable:
/// the worker process ends after it has sent its record, and the next cell gets a new one.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* expression, const char* file, int line);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

/// Throws OutOfMemory for cudaErrorMemoryAllocation, CudaError for any other error.
void check_cuda(cudaError_t code, const char* expression, const char* file, int line);

}  // namespace longca

/// Every CUDA runtime call goes through this; after a kernel launch:
/// LONGCA_CUDA(cudaGetLastError()).
#define LONGCA_CUDA(expression) ::longca::check_cuda((expression), #expression, __FILE__, __LINE__)
