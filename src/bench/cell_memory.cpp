#include "bench/cell_memory.h"

#include <algorithm>

namespace longca {
namespace {

void raise(Record& record, const char* metric, std::int64_t bytes) {
  const auto [place, is_new] = record.metrics.try_emplace(metric, 0.0);
  place->second = std::max(place->second, static_cast<double>(bytes));
}

}  // namespace

CellMemory::CellMemory(Device& device, std::int64_t tensor_bytes)
    : device_(device),
      foreign_(tracker().bytes_in_use() - tensor_bytes),
      used_before_(device.used_bytes()) {
  tracker().reset_peak();
}

void CellMemory::note_peak(Record& record) const {
  raise(record, "peak_bytes", tracker().peak_bytes() - foreign_);
}

void CellMemory::note(Record& record, const Plan& plan) const {
  note_peak(record);
  record.metrics["workspace_bytes"] = static_cast<double>(plan.workspace_bytes());
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

void CellMemory::resume() {
  foreign_ += tracker().bytes_in_use() - paused_use_;
  used_before_ += device_.used_bytes() - paused_used_;
  tracker().reset_peak();
}

}  // namespace longca
