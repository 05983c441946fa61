#include <atomic>

#include "bench/measure/cuda/hold.h"

namespace longca {
namespace {

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__global__ void wait_for(const volatile std::int32_t* released, volatile std::int32_t* gave_up,
                         std::int32_t ticket, std::uint64_t limit) {
  const std::uint64_t begin = nanoseconds();
  while (*released < ticket) {
    if (nanoseconds() - begin > limit) {
      *gave_up = 1;
      __threadfence_system();
      return;
    }
    __nanosleep(200);
  }
}

}  // namespace

void StreamHold::begin() {
  ++ticket_;
  wait_for<<<1, 1, 0, stream_>>>(&words_[kReleased], &words_[kGaveUp], ticket_, kLimit);
  LONGCA_CUDA(cudaGetLastError());
}

void StreamHold::release() noexcept {
  std::atomic_ref(words_[kReleased]).store(ticket_, std::memory_order_release);
}

bool StreamHold::take_gave_up() noexcept {
  return std::atomic_ref(words_[kGaveUp]).exchange(0) != 0;
}

}  // namespace longca
