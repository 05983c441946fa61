#include "core/cuda/error.h"
#include "gpu/bench/spin.h"

namespace longca::testing {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(std::uint64_t ns) {
  const std::uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < ns) {
  }
}

__global__ void count(int* counter) {
  ++*counter;
}

}  // namespace

void queue_spin(std::int64_t ns, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(static_cast<std::uint64_t>(ns));
  LONGCA_CUDA(cudaGetLastError());
}

void queue_count(int* counter, cudaStream_t stream) {
  count<<<1, 1, 0, stream>>>(counter);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace longca::testing
