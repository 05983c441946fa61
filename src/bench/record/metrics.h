#pragma once

#include <span>
#include <string_view>

namespace longca {

/// One figure of a record. The table is the only place that names metrics; docs/guide/metrics.md
/// explains them.
struct MetricInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view description;  ///< one line
  bool higher_is_better;
  bool may_be_negative = false;  ///< a difference of measurements
};

std::span<const MetricInfo> metric_table();
/// nullptr if there is no such metric.
const MetricInfo* find_metric(std::string_view name);

}  // namespace longca
