#include "report/break_even.h"

#include <fmt/format.h>

namespace longca {

BreakEven find_break_even(std::span<const DensityRatio> ratios) {
  BreakEven found;
  if (ratios.empty()) return found;
  found.measured = static_cast<int>(ratios.size());
  found.least = ratios.front().density;
  found.most = ratios.back().density;
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
                       format_density(break_even.least));
  }
  if (crossings.empty()) {
    return fmt::format("{}, {}–{}", break_even.begins_faster ? "always" : "never",
                       format_density(break_even.least), format_density(break_even.most));
  }
  std::string text;
  for (const double density : crossings) {
    text += fmt::format("{}{:.2f}", text.empty() ? "" : ", ", density);
  }
  if (crossings.size() > 1) return "changes at " + text;
  return break_even.begins_faster ? text : "faster from " + text;
}

}  // namespace longca
