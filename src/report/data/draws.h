#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"
#include "bench/suite/axes.h"

namespace longca {

/// Metrics of averaged draws: how many they are, and the standard deviation of their `tflops` in %
/// of the mean.
inline constexpr const char* kDraws = "draws";
inline constexpr const char* kDrawsSpread = "draws_spread_pct";

/// Makes one record of those that differ in the seed alone (same case otherwise, same machine and
/// build), at the place of the first; records of one draw stay what they are. `tflops` is the sum
/// of FLOPs over the sum of times and `time_ms` the mean, whose interval takes the draws' errors
/// for independent; memory and errors are the largest, the other metrics means. One draw without a
/// time leaves the record without one: its status and sentence are that draw's, with its seed.
std::vector<Record> average_draws(std::span<const Record> records);

/// full_text of a record's case; of averaged draws the seeds, "42,43,44".
std::optional<std::string> axis_text(const Axis& axis, const Record& record);

}  // namespace longca
