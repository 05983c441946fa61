#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "core/memory.h"
#include "longca.h"

namespace longca::capi {

/// Memory of a caller's allocator.
class CallersMemory final : public MemoryTracker {
 public:
  explicit CallersMemory(const longca_allocator& allocator) : allocator_(allocator) {}

  /// Whether nothing will be released to it any more, where nothing is allocated from it meanwhile.
  /// Never once it gave something of no bytes, whose release leaves no trace.
  bool is_idle() const {
    if (gave_empty_.load(std::memory_order_relaxed) || bytes_in_use() != 0) return false;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last `deallocate`
    return true;
  }

 protected:
  void* obtain(std::int64_t bytes) override {
    if (bytes == 0) gave_empty_.store(true, std::memory_order_relaxed);
    return allocator_.allocate(allocator_.context,
                               static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  }
  void give_back(void* pointer, std::int64_t bytes) noexcept override {
    allocator_.release(allocator_.context, pointer,
                       static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
  }
  std::string refusal(std::int64_t bytes, std::int64_t in_use) const override {
    return fmt::format("the caller's allocator gave no {} bytes, beside {} in use", bytes, in_use);
  }

 private:
  longca_allocator allocator_;
  std::atomic<bool> gave_empty_{false};
};

/// The memories of callers' allocators. Each lives at least as long as what was allocated from it:
/// what a mask caches for its kernels outlives the plan. Thread-safe.
class CallersMemories {
 public:
  /// The one for `allocator`, to allocate from for as long as the result is held. Those of other
  /// allocators that nobody holds and that are idle end.
  std::shared_ptr<CallersMemory> of(const longca_allocator& allocator) {
    const std::scoped_lock lock(mutex_);
    const Key key{allocator.context, allocator.allocate, allocator.release};
    if (const auto found = all_.find(key); found != all_.end()) return found->second;
    std::erase_if(all_, [](const auto& entry) {
      return entry.second.use_count() == 1 && entry.second->is_idle();
    });
    return all_.emplace(key, std::make_shared<CallersMemory>(allocator)).first->second;
  }

  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return all_.size();
  }

 private:
  using Key =
      std::tuple<void*, decltype(longca_allocator::allocate), decltype(longca_allocator::release)>;
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<CallersMemory>> all_;
};

}  // namespace longca::capi
