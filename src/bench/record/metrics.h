#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace longca {

/// What of a metric's values in several rounds is the record's. Of the time, its interval, the rate
/// and sums with it that is computed from all samples instead (bench/run/rounds.h).
enum class OverRounds : std::uint8_t {
  mean,
  median,  ///< of times that a single disturbed round must not move
  max,
};

/// One figure of a record. The table is the only place that names metrics; docs/guide/metrics.md
/// explains them.
struct MetricInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view description;  ///< one line
  OverRounds over_rounds;
  bool may_be_negative = false;  ///< a difference of measurements
};

std::span<const MetricInfo> metric_table();
/// nullptr if there is no such metric.
const MetricInfo* find_metric(std::string_view name);

}  // namespace longca
