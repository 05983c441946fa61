#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "core/memory.h"

namespace longca {

/// Device memory under a tracker. Blocks that are given back are kept and handed out again for the
/// same rounded size without asking the driver, whose calls may wait for the device; all use is on
/// one stream, so that reuse is ordered. When the device is full the cache is returned first.
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
