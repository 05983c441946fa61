#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace longca {

/// A median with its 95 % confidence interval by order statistics, which assumes that samples are
/// independent, and nothing about their distribution. Samples that drift are not: theirs is too
/// narrow (docs/guide/metrics.md).
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;

  /// Half the interval's width as a share of the median.
  double relative_half_width() const { return median > 0 ? (high - low) / 2 / median : 0; }
};

/// The median; `samples` is not empty.
double median(std::span<const double> samples);

/// Nothing below 6 samples: no pair of order statistics encloses the median with 95 % then.
std::optional<MedianInterval> median_interval(std::span<const double> samples);

enum class Stop : std::uint8_t {
  not_yet,
  converged,   ///< the interval's relative half-width is at most the target
  time_limit,  ///< it is not, and the time is up
};

/// Decides when enough was measured: kMinSamples at least, which give a confidence interval, unless
/// they take longer than the budget.
class StoppingRule {
 public:
  static constexpr double kTarget = 0.005;
  static constexpr std::size_t kMinSamples = 7;

  StoppingRule(double min_s, double time_limit_s, double sample_budget_s)
      : min_s_(min_s), time_limit_s_(time_limit_s), sample_budget_s_(sample_budget_s) {}

  /// `samples` are all so far, `elapsed_s` the time spent on them, pauses included, checks not. The
  /// interval is recomputed only when the samples have grown by a tenth: sorting must not cost more
  /// than measuring.
  Stop decide(std::span<const double> samples, double elapsed_s);

 private:
  double min_s_;
  double time_limit_s_;
  double sample_budget_s_;
  std::size_t next_look_ = 0;
};

}  // namespace longca
