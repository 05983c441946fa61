#include "core/lent_memory.h"

#include <array>
#include <cstddef>
#include <utility>

namespace longca {
namespace {

MemoryTracker*& lent(DeviceKind device) {
  thread_local std::array<MemoryTracker*, 2> memory{};
  return memory[static_cast<std::size_t>(device)];
}

}  // namespace

LentMemory::LentMemory(DeviceKind device, MemoryTracker& memory)
    : device_(device), before_(std::exchange(lent(device), &memory)) {}

LentMemory::~LentMemory() {
  lent(device_) = before_;
}

MemoryTracker* LentMemory::of(DeviceKind device) {
  return lent(device);
}

}  // namespace longca
