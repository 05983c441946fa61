#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attention/api/kernel.h"
#include "bench/record/record.h"
#include "bench/suite/suite.h"
#include "core/device.h"

// The device as a cell uses it: whether it can be used, its memory, its faults.

namespace longca {

/// Whether the kernel is for the device and the device can be used. A GPU that is there may refuse,
/// for example because another process has it exclusively.
Support usable(const std::string& kernel, DeviceKind kind);

/// Sets the limits of the memory trackers for one cell. Returns the device's in bytes, 0 for none.
std::int64_t limit_memory(DeviceKind kind, const RunLimits& limits);

/// Waits for the work that a cell left queued, whose errors must not become the next cell's.
/// Returns the error that has left the device unusable, if any.
std::optional<std::string> fault_after_all_work(Device& device);

/// Measures the device memory that a cell's kernel takes, without what the runner takes meanwhile.
class CellMemory {
 public:
  /// Construct it when the cell's inputs and outputs exist, which take `tensor_bytes` of what the
  /// tracker counts, and nothing else of the cell does.
  CellMemory(Device& device, std::int64_t tensor_bytes);

  /// Records the high-water marks so far: peak_bytes and workspace_bytes.
  void note(Record& record, const Plan& plan) const;
  /// Of the tracked bytes those that are neither the cell's tensors nor the runner's own: once the
  /// plan has ended, what its kernel has left. Not negative.
  std::int64_t left_bytes() const;
  /// Records peak_bytes alone.
  void note_peak(Record& record) const;
  /// On a GPU: raises the record's device_bytes to the growth of its used memory. The queue is
  /// empty, and the runner has taken memory only between `pause` and `resume`.
  void note_device(Record& record) const;

  /// Memory taken from here until `resume` is not counted: it is the runner's own, such as the
  /// reference, or that of calls that the runner makes beside those it times.
  enum class TakenBy { runner, kernel };
  void pause();
  void resume(TakenBy taker);

 private:
  MemoryTracker& tracker() const { return device_.memory(); }

  Device& device_;
  std::int64_t tensor_bytes_;
  std::int64_t foreign_;          ///< tracked bytes that are not counted as this cell's
  std::int64_t runners_;          ///< of these the runner's own
  std::int64_t used_before_;      ///< used on the device before the plan
  std::int64_t paused_use_ = 0;   ///< tracked when `pause` was called
  std::int64_t paused_used_ = 0;  ///< used on the device when `pause` was called
};

}  // namespace longca
