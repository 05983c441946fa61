#include "report/break_even.h"

#include <fmt/format.h>

#include <cmath>

#include "report/view.h"

namespace longca {
namespace {

std::optional<double> ratio(const std::optional<double>& value, const std::optional<double>& of) {
  if (!value || !of || !(*of > 0) || !(*value > 0)) return std::nullopt;
  const double quotient = *value / *of;
  return std::isfinite(quotient) ? std::optional(quotient) : std::nullopt;
}

}  // namespace

std::optional<double> metric_if_ok(const Record* record, const char* name) {
  if (record == nullptr || !record->status.ok()) return std::nullopt;
  return metric_of(record, name);
}

std::optional<double> time_of_dense(const Record* record, const Record* dense) {
  return ratio(metric_if_ok(record, "time_ms"), metric_if_ok(dense, "time_ms"));
}

std::optional<double> end_to_end_of_dense(const Record* record, const Record* dense) {
  return ratio(metric_if_ok(record, "end_to_end_ms"), metric_if_ok(dense, "time_ms"));
}

std::optional<double> selection_share(const Record* record) {
  return ratio(metric_if_ok(record, "selection_ms"), metric_if_ok(record, "end_to_end_ms"));
}

BreakEven find_break_even(std::span<const DensityRatio> ratios) {
  BreakEven found;
  if (ratios.empty()) return found;
  found.measured = static_cast<int>(ratios.size());
  found.min_density = ratios.front().density;
  found.max_density = ratios.back().density;
  found.begins_faster = ratios.front().ratio < 1;
  for (std::size_t i = 1; i < ratios.size(); ++i) {
    const auto& [d0, r0] = ratios[i - 1];
    const auto& [d1, r1] = ratios[i];
    if ((r0 < 1) == (r1 < 1)) continue;
    found.crossings.push_back(d0 + (1 - r0) / (r1 - r0) * (d1 - d0));
  }
  return found;
}

std::string format_density(double density) {
  return fmt::format("{:.4g}", density);
}

std::string describe_break_even(const BreakEven& break_even) {
  if (break_even.measured == 0) return "";
  const auto& crossings = break_even.crossings;
  if (crossings.empty() && break_even.measured == 1) {
    return fmt::format("{} at {}", break_even.begins_faster ? "faster" : "slower",
                       format_density(break_even.min_density));
  }
  if (crossings.empty()) {
    return fmt::format("{}, {}–{}", break_even.begins_faster ? "always" : "never",
                       format_density(break_even.min_density),
                       format_density(break_even.max_density));
  }
  std::string text;
  for (const double density : crossings) {
    text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", density);
  }
  if (crossings.size() > 1) return "changes at " + text;
  return break_even.begins_faster ? text : "faster from " + text;
}

}  // namespace longca
