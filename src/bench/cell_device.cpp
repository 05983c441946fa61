#include "bench/cell_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "attention/api/registry.h"
#include "core/memory.h"

namespace longca {
namespace {

/// Bytes of a GPU that stay free for what goes past the tracker: code that is loaded when it is
/// first used, local memory of threads, libraries' own.
constexpr std::int64_t kDeviceSlack = std::int64_t{512} << 20;

}  // namespace

Support usable(const std::string& kernel, DeviceKind kind) {
  const Capabilities& can = KernelRegistry::global().find(kernel, kind).capabilities();
  if (Support form = check_kind(can, kind); !form.ok()) return form;
  if (const Support& there = Device::available(kind); !there.ok()) return there;
  try {
    Device::get(kind).synchronize();
    return {};
  } catch (const std::exception& error) {
    return Support::unavailable(fmt::format("the device cannot be used: {}", error.what()));
  }
}

std::int64_t limit_memory(DeviceKind kind, const RunLimits& limits) {
  std::int64_t limit = limits.memory_limit_mib << 20;
  MemoryTracker& memory = Device::get(kind).memory();
  if (kind != DeviceKind::cpu) {
    const std::int64_t there =
        memory.bytes_in_use() + Device::get(kind).available_bytes() - kDeviceSlack;
    limit = limit == 0 ? there : std::min(limit, there);
    MemoryTracker::host().set_limit(0);
  }
  memory.set_limit(limit);
  return limit;
}

std::optional<std::string> fault_after_all_work(Device& device) {
  try {
    device.synchronize();
  } catch (const std::exception&) {
    return device.fault();  // nothing, if the error was that of one call
  }
  return std::nullopt;
}

}  // namespace longca
