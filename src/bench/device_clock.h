#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "attention/problem.h"

namespace longca {

/// A call that cannot be replayed as a graph; the sentence says why.
class GraphRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The clock and the caches of a device, as measuring needs them. A GPU's implementation records
/// events on its stream; the CPU's reads the steady clock around calls that return when their work
/// is done.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Another kernel comes: forgets what was learned of the last one's calls.
  virtual void begin() {}
  /// Makes caches hold nothing that a kernel uses.
  virtual void flush_caches() = 0;
  /// Time of one call, in ms of the device.
  virtual double time_once(const std::function<void()>& call) = 0;
  /// Times of `count` calls with nothing in between, in ms each.
  virtual std::vector<double> time_back_to_back(const std::function<void()>& call, int count) = 0;
  /// Whether launch time was kept out of the times since `begin`. False once a call could not be
  /// queued while its device was held back, because it waits for the device itself.
  virtual bool held() const { return true; }
  /// A function that replays what `call` queues as one graph of the device. Throws GraphRefused.
  virtual std::function<void()> as_graph(const std::function<void()>& call);
};

/// Throws InputError for a device that this build has no clock for.
std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device);

}  // namespace longca
