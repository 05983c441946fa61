#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/suite.h"
#include "core/device.h"

namespace longca {

/// Whether the kernel is for the device, and that can be used. A GPU that is there may refuse:
/// another process has it for itself, say.
Support usable(const std::string& kernel, DeviceKind kind);

/// Sets the limits of the trackers for one cell. The device's in bytes, 0 for none.
std::int64_t limit_memory(DeviceKind kind, const RunLimits& limits);

/// The error that has left the device unusable. Waits for what a cell that threw left in the queue:
/// its errors are not the next cell's.
std::optional<std::string> fault_after_all_work(Device& device);

}  // namespace longca
