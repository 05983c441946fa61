#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "attention/problem.h"

namespace longca {

/// The clock and the caches of a device, as measuring needs them. A GPU's implementation records
/// events on its stream; the CPU's reads the steady clock around calls that return when their work
/// is done.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Makes caches hold nothing that a kernel uses.
  virtual void flush_caches() = 0;
  /// Time of one call, in ms of the device.
  virtual double time_once(const std::function<void()>& call) = 0;
  /// Times of `count` calls with nothing in between, in ms each.
  virtual std::vector<double> time_back_to_back(const std::function<void()>& call, int count) = 0;
};

/// Throws InputError for a device that this build has no clock for.
std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device);

}  // namespace longca
