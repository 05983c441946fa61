#include "bench/cell/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "attention/api/registry.h"
#include "core/memory.h"

namespace longca {
namespace {

/// Bytes of a GPU left free for memory that the tracker does not see: code loaded on first use,
/// threads' local memory, libraries' own.
constexpr std::int64_t kDeviceSlack = std::int64_t{512} << 20;

void raise(Record& record, const char* metric, std::int64_t bytes) {
  const auto [place, is_new] = record.metrics.try_emplace(metric, 0.0);
  place->second = std::max(place->second, static_cast<double>(bytes));
}

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
    return device.fault();  // none if the error was only that call's
  }
  return std::nullopt;
}

CellMemory::CellMemory(Device& device, std::int64_t tensor_bytes)
    : device_(device),
      tensor_bytes_(tensor_bytes),
      foreign_(tracker().bytes_in_use() - tensor_bytes),
      runners_(foreign_),
      used_before_(device.used_bytes()) {
  tracker().reset_peak();
}

void CellMemory::note_peak(Record& record) const {
  raise(record, "peak_bytes", tracker().peak_bytes() - foreign_);
}

void CellMemory::note(Record& record, const Plan& plan) const {
  note_peak(record);
  const std::int64_t bytes = plan.workspace_bytes();
  if (bytes < 0) {
    throw std::runtime_error(fmt::format("the plan's workspace_bytes is {}: at least 0", bytes));
  }
  record.metrics["workspace_bytes"] = static_cast<double>(bytes);
}

std::int64_t CellMemory::left_bytes() const {
  return std::max<std::int64_t>(tracker().bytes_in_use() - runners_ - tensor_bytes_, 0);
}

void CellMemory::note_device(Record& record) const {
  if (&device_ != &Device::get(DeviceKind::cpu)) {
    raise(record, "device_bytes", device_.used_bytes() - used_before_);
  }
}

void CellMemory::pause() {
  paused_use_ = tracker().bytes_in_use();
  paused_used_ = device_.used_bytes();
}

void CellMemory::resume(TakenBy taker) {
  const std::int64_t taken = tracker().bytes_in_use() - paused_use_;
  foreign_ += taken;
  if (taker == TakenBy::runner) runners_ += taken;
  used_before_ += device_.used_bytes() - paused_used_;
  tracker().reset_peak();
}

}  // namespace longca
