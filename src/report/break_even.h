#pragma once

#include <span>
#include <string>
#include <vector>

namespace longca {

/// Where a kernel stops being faster than dense as density grows. Only densities that were
/// measured count, and between two of them time is taken to be linear; nothing is extrapolated.
struct BreakEven {
  int measured = 0;                 ///< densities with both times
  double least = 0;                 ///< of them
  double most = 0;                  ///< likewise
  bool begins_faster = false;       ///< than dense, at the least density
  std::vector<double> crossings{};  ///< ascending; more than one where noise or the kernel has it

  bool operator==(const BreakEven&) const = default;
};

/// A density, and a time there ÷ the dense one.
struct DensityRatio {
  double density = 0;
  double ratio = 0;
};
/// `ratios` by ascending density. At a ratio of 1 a kernel is not faster.
BreakEven find_break_even(std::span<const DensityRatio> ratios);
/// "0.62"; "always, 0.2–0.8" or "never, 0.2–0.8" where it is as good or bad at all densities
/// measured, "faster at 0.5" or "slower at 0.5" where there is only one; "faster from 0.31",
/// "changes at 0.31, 0.55"; "" where there is nothing to compare.
std::string describe_break_even(const BreakEven& break_even);
/// "0.25".
std::string format_density(double density);

}  // namespace longca
