#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "bench/record.h"
#include "core/device.h"

namespace longca {

/// What a cell's kernel takes of its device's memory, apart from what the runner takes meanwhile.
class CellMemory {
 public:
  /// Begins when inputs and outputs are there and nothing else is the cell's: `tensor_bytes` of
  /// what the tracker counts belong to it.
  CellMemory(Device& device, std::int64_t tensor_bytes);

  /// Writes the high-water marks so far into the record: peak_bytes and workspace_bytes.
  void note(Record& record, const Plan& plan) const;
  /// The first of the two alone.
  void note_peak(Record& record) const;
  /// On a GPU: raises the record's device_bytes to what its used memory has grown by. The queue is
  /// empty; the runner has taken nothing since the beginning but what lay between pauses.
  void note_device(Record& record) const;

  /// What is taken from here until `resume` is the runner's: the reference keeps it for the next
  /// kernels.
  void pause();
  void resume();

 private:
  MemoryTracker& tracker() const { return device_.memory(); }

  Device& device_;
  std::int64_t foreign_;          ///< tracked, but not of this cell
  std::int64_t used_before_;      ///< of the device, before the plan
  std::int64_t paused_use_ = 0;   ///< of the tracker
  std::int64_t paused_used_ = 0;  ///< of the device
};

}  // namespace longca
