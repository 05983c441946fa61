#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

// Ratios of a block-sparse cell's metrics to the dense cell's, if both are `ok` and were measured;
// either may be null.
std::optional<double> time_of_dense(const Record* record, const Record* dense);
std::optional<double> end_to_end_of_dense(const Record* record, const Record* dense);
/// The metric, if the record is `ok` and has it.
std::optional<double> metric_if_ok(const Record* record, const char* name);
/// selection_ms / end_to_end_ms.
std::optional<double> selection_share(const Record* record);

/// The densities at which a kernel stops or starts to be faster than dense. Between two measured
/// densities the time is interpolated linearly; nothing is extrapolated.
struct BreakEven {
  int measured = 0;  ///< densities with both times
  double min_density = 0;
  double max_density = 0;
  bool begins_faster = false;       ///< than dense, at min_density
  std::vector<double> crossings{};  ///< ascending; several where the kernel's times have them

  bool operator==(const BreakEven&) const = default;
};

/// A density, and the kernel's time there ÷ the dense time.
struct DensityRatio {
  double density = 0;
  double ratio = 0;
};
/// `ratios` by ascending density. At a ratio of 1 a kernel is not faster.
BreakEven find_break_even(std::span<const DensityRatio> ratios);
/// "0.62"; "always, 0.2–0.8" or "never, 0.2–0.8" if it is faster at all or none of the measured
/// densities, "faster at 0.5" or "slower at 0.5" if only one was measured; "faster from 0.31",
/// "changes at 0.31, 0.55"; "" if none was measured.
std::string describe_break_even(const BreakEven& break_even);
/// "0.25".
std::string format_density(double density);

}  // namespace longca
