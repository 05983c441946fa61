#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "core/memory.h"

namespace longca {

/// A caching allocator of device memory. Freed blocks are reused for the same rounded size, because
/// cudaMalloc and cudaFree may synchronise with the device. All use must be on one stream, which
/// orders reuse. When the device is full, the cache is released and the allocation tried again.
class CachingCudaMemory : public MemoryTracker {
 public:
  ~CachingCudaMemory() override;

  std::int64_t cached_bytes() const override;
  void release_cache() noexcept override;

 protected:
  void* obtain(std::int64_t bytes) override;
  void give_back(void* pointer, std::int64_t bytes) noexcept override;

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::vector<void*>> free_;  ///< by rounded size
  std::int64_t cached_ = 0;
};

}  // namespace longca
