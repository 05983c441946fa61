#include "core/cuda/caching_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>

#include "core/rounding.h"

namespace longca {
namespace {

/// Rounds up: below 2 MiB by at most an eighth, so that what one plan gives back serves the next,
/// whose lists are a little longer or shorter; above to 2 MiB, the driver's own granularity.
std::int64_t rounded(std::int64_t bytes) {
  constexpr std::int64_t kSmall = 512;
  constexpr std::int64_t kLarge = std::int64_t{2} << 20;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  const std::int64_t unit = bytes < kLarge ? std::max(power / 8, kSmall) : kLarge;
  return std::max(unit, round_up(bytes, unit));
}

}  // namespace

CachingCudaMemory::~CachingCudaMemory() {
  release_cache();
}

std::int64_t CachingCudaMemory::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_;
}

void CachingCudaMemory::release_cache() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) cudaFree(block);
  }
  free_.clear();
  cached_ = 0;
}

void* CachingCudaMemory::obtain(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes);
  {
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(size);
    if (found != free_.end() && !found->second.empty()) {
      void* block = found->second.back();
      found->second.pop_back();
      cached_ -= size;
      return block;
    }
  }
  void* block = nullptr;
  if (cudaMalloc(&block, static_cast<std::size_t>(size)) == cudaSuccess) return block;
  cudaGetLastError();  // clears the error, which the next check of a launch would report
  release_cache();
  if (cudaMalloc(&block, static_cast<std::size_t>(size)) == cudaSuccess) return block;
  cudaGetLastError();  // the caller throws OutOfMemory instead
  return nullptr;
}

void CachingCudaMemory::give_back(void* pointer, std::int64_t bytes) noexcept {
  const std::int64_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  try {
    free_[size].push_back(pointer);
    cached_ += size;
  } catch (const std::bad_alloc&) {
    cudaFree(pointer);
  }
}

}  // namespace longca
