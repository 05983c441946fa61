#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca::simulate {

/// The time of a call that starts alone, at full clocks.
struct CallTime {
  double seconds = 0;
  double cycle_seconds = 0;  ///< of these: the SMs' cycles, which take longer at a lower clock
  double busy_seconds = 0;   ///< of these, the mean over the SMs in which they compute
};

/// What calls of a kernel take on one GPU. Thread-safe.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  /// One call; 0 for a mask without cells.
  virtual CallTime call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const = 0;
  /// The factor on the time of calls that together run for `run_seconds`, each run after a pause:
  /// the device's power limit slows long runs down.
  virtual double slowdown(double run_seconds, cost::Pass pass) const = 0;
  /// The factor on cycles where calls follow each other without a pause, with so many seconds in
  /// which SMs compute and of passes over memory in each `seconds`.
  virtual double sustained_slowdown(double busy_seconds, double memory_seconds, double seconds,
                                    cost::Pass pass) const = 0;
  /// What of a call's time goes by beside the call before it, where that is under way until then.
  virtual double hidden_seconds(cost::Pass pass) const = 0;
  /// What calls that take `seconds` together take in a run of repetitions with pauses.
  double slowed(double seconds, cost::Pass pass) const { return seconds * slowdown(seconds, pass); }
  double seconds(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const {
    return call(mask, shape, pass).seconds;
  }
  /// What one call takes where nothing else runs and it follows itself without a pause.
  double sustained(const CallTime& call, cost::Pass pass) const;
};

/// What a call of a kernel takes, for any number of heads.
struct CallRate {
  double flops_per_second = 0;
  double keys_per_row = 0;  ///< added to each row for partial tiles and for what is done once a row
  double seconds_per_call = 0;

  /// `area`: allowed cells per head.
  double seconds(double area, double rows, int heads, int head_dim, cost::Pass pass) const;
};

/// Of any kernel, by rates that were fitted to calls: with the slowing down of calls as long.
class RateTimes final : public KernelTimes {
 public:
  RateTimes(const CallRate& forward, const CallRate& backward)
      : forward_(forward), backward_(backward) {}
  CallTime call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const override;
  double slowdown(double /*run_seconds*/, cost::Pass /*pass*/) const override { return 1; }
  double sustained_slowdown(double /*busy_seconds*/, double /*memory_seconds*/, double /*seconds*/,
                            cost::Pass /*pass*/) const override {
    return 1;
  }
  double hidden_seconds(cost::Pass /*pass*/) const override { return 0; }

 private:
  CallRate forward_;
  CallRate backward_;
};

/// Of `slice`, by the lists that its kernels walk (attention/kernels/slice/planner/call_estimate.h)
/// and the platform's page. Calls of one static mask are estimated once.
class SliceTimes final : public KernelTimes {
 public:
  /// `platform` outlives this object. The factors are on the time of a call.
  explicit SliceTimes(const cost::Platform& platform, double forward_factor = 1,
                      double backward_factor = 1)
      : platform_(platform), factors_{forward_factor, backward_factor} {}
  CallTime call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const override;
  double slowdown(double run_seconds, cost::Pass pass) const override;
  double sustained_slowdown(double busy_seconds, double memory_seconds, double seconds,
                            cost::Pass pass) const override;
  /// A forward call's kernel starts while the one before it ends (PDL); a backward call's three
  /// kernels wait for each other.
  double hidden_seconds(cost::Pass pass) const override;
  /// Bytes that the lists of a backward call need for the sums of split key tiles.
  double sum_bytes(const Mask& mask, const cost::HeadShape& shape) const;

 private:
  struct Estimate {
    CallTime time;
    double sum_bytes = 0;
  };
  const cost::PowerLimit& power(cost::Pass pass) const;
  /// Kept for static masks.
  Estimate estimate(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const;

  using CallKey = std::vector<std::int64_t>;  ///< all that a call's time depends on
  struct KeyHash {
    std::size_t operator()(const CallKey& key) const;
  };

  const cost::Platform& platform_;
  double factors_[2];  ///< by pass
  mutable std::mutex mutex_;
  mutable std::unordered_map<CallKey, Estimate, KeyHash> known_;
};

/// A call that was measured.
struct TimedCall {
  double area = 0;
  double rows = 0;
  int heads = 0;
  int head_dim = 0;
  double seconds = 0;
};

/// The rate that fits the calls best: least squares of relative errors over the three figures, none
/// of them negative. No calls: a rate of 0, which is none.
CallRate fit_rate(std::span<const TimedCall> calls, cost::Pass pass);

/// The same with another rate of cells, so that it is right in the mean (of logarithms) for these
/// calls; the time of a call beside its cells stays. Where `seconds` is above 0, calls that take
/// about as long count most: a weight of exp(−½ log₂²) of the ratio of times.
CallRate scaled_to(CallRate rate, std::span<const TimedCall> calls, cost::Pass pass,
                   double seconds = 0);

}  // namespace longca::simulate
