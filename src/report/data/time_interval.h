#pragma once

#include <optional>

#include "bench/record/record.h"

namespace longca {

/// The 95 % interval of a record's time_ms, in ms. It holds time_ms, and low is above 0 where
/// time_ms is.
struct TimeInterval {
  double low = 0;
  double high = 0;

  bool operator==(const TimeInterval&) const = default;
};

/// Of one round that of its samples' median, which often reaches further up than down; of several
/// rounds, of a mean of draws and without samples time_ms ± time_ci_pct. Nothing where too few
/// repetitions ran for either. Sorts the samples.
std::optional<TimeInterval> interval_of_time(const Record& record);

}  // namespace longca
