#include "core/cuda/error.h"

#include <fmt/format.h>

#include "core/memory.h"

namespace longca {
namespace {

std::string sentence(cudaError_t code, const char* expression, const char* file, int line) {
  return fmt::format("{}:{}: {} failed: {} ({})", file, line, expression, cudaGetErrorString(code),
                     cudaGetErrorName(code));
}

}  // namespace

CudaError::CudaError(cudaError_t code, const char* expression, const char* file, int line)
    : std::runtime_error(sentence(code, expression, file, line)), code_(code) {}

void check_cuda(cudaError_t code, const char* expression, const char* file, int line) {
  if (code == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears an error that is not sticky
  if (code == cudaErrorMemoryAllocation) throw OutOfMemory(sentence(code, expression, file, line));
  throw CudaError(code, expression, file, line);
}

}  // namespace longca
