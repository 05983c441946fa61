#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "attention/api/problem.h"

namespace longca {

/// Bytes that the CPU's clock reads to flush its caches: those of all caches of level 2 and above
/// that this process's CPUs use, 64 MiB if they are unknown, at most 512 MiB; or what
/// $LONGCA_CACHE_FLUSH_BYTES says.
std::int64_t cache_flush_bytes();

/// What $LONGCA_CACHE_FLUSH_BYTES says, if it is set. InputError if that is no number up to 512
/// MiB.
std::optional<std::int64_t> chosen_cache_flush_bytes();

/// A call cannot be replayed as a graph; what() says why.
class GraphRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Processes that take the same times together, each on its own device: the ranks of a case. They
/// agree here, so that all of them make the same calls.
class ClockTeam {
 public:
  virtual ~ClockTeam() = default;
  /// Makes the devices begin together. Called where a time begins, on a GPU behind the hold and
  /// before the first event.
  virtual void line_up() = 0;
  /// Whether `mine` is true on any of them.
  virtual bool any(bool mine) = 0;
};

/// A device's clock and caches. A GPU's implementation records events on its stream; the CPU's
/// reads the steady clock around calls that return when their work is done.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  /// Begins with another kernel: forgets what was learned from the last one's calls.
  virtual void begin() {}
  /// Of two calls that are timed in turns.
  enum class Series : std::uint8_t { call, beside };
  /// Times from now on are of that call; from `begin` on they are of the first.
  virtual void begin_series(Series /*series*/) {}
  /// Evicts a kernel's data from the caches.
  virtual void flush_caches() = 0;
  /// Time of one call, in ms of the device.
  virtual double time_once(const std::function<void()>& call) = 0;
  /// Times of `count` calls back to back, in ms each. Between two of them is only `between`, in
  /// none of the times; on a GPU it queues its work on the stream.
  virtual std::vector<double> time_back_to_back(const std::function<void()>& call,
                                                const std::function<void()>& between,
                                                int count) = 0;
  /// Whether launch time was kept out of the times since `begin`. False once a call could not be
  /// queued while its device was held back, because it waits for the device itself.
  virtual bool held() const { return true; }
  static constexpr std::int64_t kPeekedBytes = 64;
  /// A call that was queued while the device was held back.
  struct HeldCall {
    bool kept = true;          ///< whether it keeps to the device's queue
    std::optional<double> ms;  ///< its time, where there is one
  };
  /// Whether `call` keeps to the device's queue: while that is held back for `hold_s`, the first
  /// kPeekedBytes of its `output` must not change. A call that works beside the queue would seem to
  /// take no time. True where this cannot be seen, as for a call that waits for the device itself.
  virtual HeldCall hold_back(const std::function<void()>& /*call*/, const void* /*output*/,
                             double /*hold_s*/) {
    return {};
  }
  /// What the calls from now on write: contiguous memory of the device.
  virtual void watch(std::vector<std::span<const std::byte>> results) {
    watched_ = std::move(results);
  }
  /// Whether what is watched has changed since right behind the last timed call: then that call's
  /// work goes on behind its time. Waits for the device.
  virtual bool changed_since() = 0;
  /// Calls again and again for `seconds`, untimed.
  void repeat(const std::function<void()>& call, double seconds);
  /// A function that replays what `call` queues as one graph of the device. Throws GraphRefused.
  virtual std::function<void()> as_graph(const std::function<void()>& call);
  /// Seconds since some fixed point, to decide when to stop.
  virtual double now_s();
  /// Takes times together with `team` from now on, which outlives this; null: alone.
  void join(ClockTeam* team) { team_ = team; }

 protected:
  /// One untimed call to its end; over ranks it begins when all of them have ended the one before.
  virtual void run(const std::function<void()>& call) { call(); }
  const std::vector<std::span<const std::byte>>& watched() const { return watched_; }
  void line_up() {
    if (team_ != nullptr) team_->line_up();
  }
  bool any(bool mine) { return team_ != nullptr ? team_->any(mine) : mine; }

 private:
  ClockTeam* team_ = nullptr;
  std::vector<std::span<const std::byte>> watched_;
};

/// Throws InputError for a device that this build has no clock for.
std::unique_ptr<DeviceClock> make_device_clock(DeviceKind device);

/// The clock of this process's GPU: events on its stream, which is held back until the work between
/// them is queued. Only in a build with CUDA.
std::unique_ptr<DeviceClock> make_cuda_clock();

}  // namespace longca
