#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "core/rounding.h"

namespace longca {

/// An allocation that would pass the tracker's limit, or that the system refused.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string sentence) : sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

/// Allocates tensors and workspaces and counts their bytes: `peak_bytes` of a record is the
/// high-water mark during the case. Thread-safe. This class allocates host memory; a device's
/// tracker overrides `obtain` and `give_back`.
class MemoryTracker {
 public:
  MemoryTracker() = default;
  virtual ~MemoryTracker() = default;
  MemoryTracker(const MemoryTracker&) = delete;
  MemoryTracker& operator=(const MemoryTracker&) = delete;

  /// The program's one tracker of host memory.
  static MemoryTracker& host();

  /// `bytes` of uninitialised memory aligned to 64 bytes (2 MiB from 4 MiB on, so that the kernel
  /// can back it with huge pages). Throws OutOfMemory. Zero bytes give a valid, unusable pointer.
  void* allocate(std::int64_t bytes);
  void deallocate(void* pointer, std::int64_t bytes) noexcept;

  std::int64_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  std::int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  /// Restarts the high-water mark at the bytes in use now.
  void reset_peak() { peak_.store(bytes_in_use(), std::memory_order_relaxed); }
  /// Bytes that were deallocated but are kept for reuse; `release_cache` returns them to the
  /// system.
  virtual std::int64_t cached_bytes() const { return 0; }
  virtual void release_cache() noexcept {}
  /// Upper bound of the bytes in use; 0 for none.
  void set_limit(std::int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

 protected:
  /// Null if the system has not that much.
  virtual void* obtain(std::int64_t bytes);
  virtual void give_back(void* pointer, std::int64_t bytes) noexcept;
  /// What OutOfMemory says.
  virtual std::string refusal(std::int64_t bytes, std::int64_t in_use) const;

 private:
  std::atomic<std::int64_t> in_use_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> limit_{0};
};

/// Alignment of the parts of one allocation: for vector loads, cache lines and copy engines.
inline constexpr std::int64_t kPartAlignment = 256;

/// The bytes from the begin of a part to where the next one may begin.
constexpr std::int64_t aligned(std::int64_t bytes) {
  return round_up(bytes, kPartAlignment);
}

/// An owned, tracked, uninitialised array in device or host memory.
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryTracker& memory, std::int64_t bytes)
      : bytes_(bytes), data_(memory.allocate(bytes), Release{&memory, bytes}) {}

  void* data() const { return data_.get(); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Release {
    MemoryTracker* memory;
    std::int64_t bytes;
    void operator()(void* pointer) const noexcept { memory->deallocate(pointer, bytes); }
  };
  std::int64_t bytes_ = 0;
  std::unique_ptr<void, Release> data_{nullptr, Release{nullptr, 0}};
};

/// A Buffer in host memory.
class HostBuffer : public Buffer {
 public:
  HostBuffer() = default;
  explicit HostBuffer(std::int64_t bytes) : Buffer(MemoryTracker::host(), bytes) {}
};

}  // namespace longca
