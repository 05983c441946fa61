#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

namespace longca {

/// Thrown when an allocation would pass the tracker's limit or the system refuses it.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::string sentence) : sentence_(std::move(sentence)) {}
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  std::string sentence_;
};

/// Counts the bytes of every tensor and workspace that goes through it: `peak_bytes` of a record is
/// its high-water mark during the case. Thread-safe.
class MemoryTracker {
 public:
  /// The tracker of host memory, under every host tensor and workspace of the program.
  static MemoryTracker& host();

  /// `bytes` of uninitialised memory aligned to 64 bytes (2 MiB from 4 MiB on, so that the kernel
  /// can back it with huge pages). Throws OutOfMemory. Zero bytes give a valid, unusable pointer.
  void* allocate(std::int64_t bytes);
  void deallocate(void* pointer, std::int64_t bytes) noexcept;

  std::int64_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed); }
  std::int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  /// Starts a new high-water mark from what is in use now.
  void reset_peak() { peak_.store(bytes_in_use(), std::memory_order_relaxed); }
  /// Bytes in use that no allocation may pass; 0 for none.
  void set_limit(std::int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> in_use_{0};
  std::atomic<std::int64_t> peak_{0};
  std::atomic<std::int64_t> limit_{0};
};

/// An owned, tracked, uninitialised array of host memory.
class HostBuffer {
 public:
  HostBuffer() = default;
  explicit HostBuffer(std::int64_t bytes)
      : bytes_(bytes), data_(MemoryTracker::host().allocate(bytes), Release{bytes}) {}

  void* data() const { return data_.get(); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Release {
    std::int64_t bytes;
    void operator()(void* pointer) const noexcept {
      MemoryTracker::host().deallocate(pointer, bytes);
    }
  };
  std::int64_t bytes_ = 0;
  std::unique_ptr<void, Release> data_{nullptr, Release{0}};
};

}  // namespace longca
