#pragma once

#include <cstdint>
#include <memory>

#include "calibrate/probe.h"

namespace longca::calibrate {

/// The work of one probe on one device, with its memory.
class ProbeWork {
 public:
  virtual ~ProbeWork() = default;
  /// Overwrites what the work writes, so that nothing right is left of an earlier call.
  virtual void poison() = 0;
  /// On a GPU queued on the device's stream.
  virtual void call() = 0;
  /// Whether what the last call wrote is right, in every element. The device is idle.
  virtual bool is_right(std::uint64_t seed) = 0;
};

/// Throws InputError for a probe that the device has none of, OutOfMemory, and what the device or
/// its libraries say.
std::unique_ptr<ProbeWork> make_probe_work(const Probe& probe, DeviceKind kind);

std::unique_ptr<ProbeWork> make_cpu_work(const Probe& probe);
/// Only in a build with CUDA.
std::unique_ptr<ProbeWork> make_cuda_work(const Probe& probe);

/// Fills device memory so that no two parts of 1 / 64 are the same; with another `first`,
/// otherwise.
void fill_unevenly(Device& device, void* data, std::int64_t bytes, int first = 0);

}  // namespace longca::calibrate
