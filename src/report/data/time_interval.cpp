#include "report/data/time_interval.h"

#include <algorithm>

#include "bench/measure/statistics.h"
#include "report/data/draws.h"

namespace longca {
namespace {

/// The least end of an interval, as a share of the time.
constexpr double kLeastShare = 0.01;

}  // namespace

std::optional<TimeInterval> interval_of_time(const Record& record) {
  const auto time = record.metrics.find("time_ms");
  const auto percent = record.metrics.find("time_ci_pct");
  if (time == record.metrics.end() || percent == record.metrics.end()) return std::nullopt;
  const double ms = time->second;
  const double half_width = percent->second / 100 * ms;
  TimeInterval interval{ms - half_width, ms + half_width};
  const bool is_one_round = record.rounds_ms.size() < 2 && !record.metrics.contains(kDraws);
  if (const auto own = is_one_round ? median_interval(record.samples_ms) : std::nullopt) {
    interval = {std::min(own->low, ms), std::max(own->high, ms)};
  }
  interval.low = std::max(interval.low, kLeastShare * ms);
  return interval;
}

}  // namespace longca
