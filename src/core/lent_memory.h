#pragma once

#include "core/device.h"
#include "core/memory.h"

namespace longca {

/// While it lives, what this thread allocates on a device comes from `memory`: the workspace of a
/// plan that is made for a caller with memory of his own. `memory` must outlive what was allocated.
/// Scopes of one thread nest.
class LentMemory {
 public:
  LentMemory(DeviceKind device, MemoryTracker& memory);
  ~LentMemory();
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;

  /// What is lent to this thread now; nullptr if nothing is.
  static MemoryTracker* of(DeviceKind device);

 private:
  DeviceKind device_;
  MemoryTracker* before_;
};

}  // namespace longca
