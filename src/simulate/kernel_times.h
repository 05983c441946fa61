#pragma once

#include <span>
#include <vector>

#include "cost/kernel_cost.h"

namespace longca::simulate {

/// What a call of a kernel takes, for any number of heads.
struct CallRate {
  double flops_per_second = 0;
  double keys_per_row = 0;  ///< added to each row for partial tiles and for what is done once a row
  double seconds_per_call = 0;

  /// `area`: allowed cells per head.
  double seconds(double area, double rows, int heads, int head_dim, cost::Pass pass) const;
};

/// Of a kernel: both passes.
struct KernelTimes {
  CallRate forward;
  CallRate backward;

  const CallRate& of(cost::Pass pass) const {
    return pass == cost::Pass::forward ? forward : backward;
  }
};

/// Of `slice`, by the platform's page.
KernelTimes slice_times(const cost::Platform& platform);

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
