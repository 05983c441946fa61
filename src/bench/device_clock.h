#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "attention/api/problem.h"

namespace longca {

/// A call that cannot be replayed as a graph; the sentence says why.
class GraphRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Other processes that take the same times at the same moment, each on its own device: the ranks
/// of a case. What they agree on here keeps all of them at the same calls.
class ClockTeam {
 public:
  virtual ~ClockTeam() = default;
  /// Makes the devices begin together: called where a time begins, on a GPU behind the hold and
  /// before the first event.
  virtual void line_up() = 0;
  /// Whether it is so for any of the team.
  virtual bool any(bool mine) = 0;
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
  static constexpr std::int64_t kPeekedBytes = 64;
  /// Of a call behind a queue that was held back.
  struct HeldCall {
    bool kept = true;          ///< it keeps to the device's queue
    std::optional<double> ms;  ///< its time, where there is one
  };
  /// Whether `call` keeps to the device's queue: while that is held back for `patience_s`, the
  /// first kPeekedBytes of its `output` stay as they are. One that does its work beside the
  /// queue would seem to take no time. True where it cannot be seen, as for a call that waits for
  /// the device itself.
  virtual HeldCall hold_back(const std::function<void()>& /*call*/, const void* /*output*/,
                             double /*patience_s*/) {
    return {};
  }
  /// A function that replays what `call` queues as one graph of the device. Throws GraphRefused.
  virtual std::function<void()> as_graph(const std::function<void()>& call);
  /// Seconds since some moment, for decisions about when to stop.
  virtual double now_s();
  /// From now on times are taken together with others; null: alone. Outlives its use.
  void join(ClockTeam* team) { team_ = team; }

 protected:
  void line_up() {
    if (team_ != nullptr) team_->line_up();
  }
  bool any(bool mine) { return team_ != nullptr ? team_->any(mine) : mine; }

 private:
  ClockTeam* team_ = nullptr;
};

/// Throws InputError for a device that this build has no clock for.
std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device);

}  // namespace longca
