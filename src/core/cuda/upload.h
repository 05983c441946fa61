#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/device.h"

namespace longca {

/// Copies to the memory of the current GPU; an empty buffer for no values.
template <typename T>
Buffer on_device(const std::vector<T>& values) {
  if (values.empty()) return {};
  Device& gpu = Device::get(DeviceKind::cuda);
  Buffer buffer(gpu.memory(), static_cast<std::int64_t>(values.size() * sizeof(T)));
  gpu.copy(buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

/// Where an array of an ArrayUpload begins in its buffer, in bytes; nowhere if it has no values.
template <typename T>
class UploadedArray {
 public:
  UploadedArray() = default;
  explicit UploadedArray(std::int64_t offset) : offset_(offset) {}

  /// nullptr for no values.
  T* in(const Buffer& buffer) const {
    return offset_ < 0 ? nullptr : reinterpret_cast<T*>(buffer.as<std::byte>() + offset_);
  }

 private:
  std::int64_t offset_ = -1;
};

/// Brings several arrays to the memory of the current GPU by one allocation and one copy: each
/// takes some 10 µs, and a plan has a dozen short arrays.
class ArrayUpload {
 public:
  /// Adds a copy of the values, aligned to kPartAlignment.
  template <typename T>
  UploadedArray<T> add(const std::vector<T>& values) {
    if (values.empty()) return {};
    const std::int64_t offset = aligned(static_cast<std::int64_t>(bytes_.size()));
    const std::size_t size = values.size() * sizeof(T);
    bytes_.resize(static_cast<std::size_t>(offset) + size);
    std::memcpy(bytes_.data() + offset, values.data(), size);
    return UploadedArray<T>(offset);
  }

  /// All arrays in device memory, once they are there.
  Buffer copy() const { return on_device(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace longca
