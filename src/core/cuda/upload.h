#pragma once

#include <cstdint>
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

}  // namespace longca
