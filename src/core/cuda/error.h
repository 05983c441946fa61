#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace longca {

/// A CUDA call that failed. After a sticky error (an illegal address, say) the context is unusable:
/// the worker process sends its record and exits, and the next cell runs in a new one.
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

/// Wraps every CUDA runtime call; after a kernel launch, LONGCA_CUDA(cudaGetLastError()).
#define LONGCA_CUDA(expression) ::longca::check_cuda((expression), #expression, __FILE__, __LINE__)
