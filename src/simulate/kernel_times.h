#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca::simulate {

/// What calls of a kernel take on one GPU. Thread-safe.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  /// One call that starts alone; 0 for a mask without cells.
  virtual double seconds(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const = 0;
  /// The factor on the time of calls that together run for `run_seconds`, ∞ for those that follow
  /// each other without a pause: the device's power limit slows long runs down.
  virtual double slowdown(double run_seconds, cost::Pass pass) const = 0;
  /// What of a call's time goes by beside the call before it, where that is under way until then.
  virtual double hidden_seconds(cost::Pass pass) const = 0;
  /// What calls that take `seconds` together take in a run of repetitions with pauses.
  double slowed(double seconds, cost::Pass pass) const { return seconds * slowdown(seconds, pass); }
  /// What one call that takes `seconds` alone takes where calls follow each other without a pause.
  double sustained(double seconds, cost::Pass pass) const {
    constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();
    return (seconds - hidden_seconds(pass)) * slowdown(kWithoutEnd, pass);
  }
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
  double seconds(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const override;
  double slowdown(double /*run_seconds*/, cost::Pass /*pass*/) const override { return 1; }
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
  double seconds(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const override;
  double slowdown(double run_seconds, cost::Pass pass) const override;
  /// The time of a call beside its tiles: its kernels start while those before them end (PDL).
  double hidden_seconds(cost::Pass pass) const override;
  /// Bytes that the lists of a backward call need for the sums of split key tiles.
  double sum_bytes(const Mask& mask, const cost::HeadShape& shape) const;

 private:
  struct Call {
    double seconds = 0;
    double sum_bytes = 0;
  };
  /// At most once for each static mask.
  Call call(const Mask& mask, const cost::HeadShape& shape, cost::Pass pass) const;

  using CallKey = std::vector<std::int64_t>;  ///< all that a call's time depends on
  struct KeyHash {
    std::size_t operator()(const CallKey& key) const;
  };

  const cost::Platform& platform_;
  double factors_[2];  ///< by pass
  mutable std::mutex mutex_;
  mutable std::unordered_map<CallKey, Call, KeyHash> known_;
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
