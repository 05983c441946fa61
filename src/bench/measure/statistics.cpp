#include "bench/measure/statistics.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace longca {
namespace {

constexpr double kTail = 0.025;  // of each side: 95 % in between

/// The largest k with P(Binomial(n, 1/2) < k) <= kTail, so that the k-th smallest and k-th largest
/// samples enclose the median with 95 %; 0 if there is none.
std::size_t rank_of_low(std::size_t n) {
  const auto count = static_cast<double>(n);
  if (n > 500) return static_cast<std::size_t>(std::floor((count - 1.96 * std::sqrt(count)) / 2));
  double term = std::pow(0.5, count);  // P(Binomial = k)
  double below = term;                 // P(Binomial < k + 1)
  std::size_t k = 0;
  while (below <= kTail) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += term;
  }
  return k;
}

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  return sorted;
}

}  // namespace

double median(std::span<const double> samples) {
  LONGCA_CHECK(!samples.empty(), "no samples");
  return median_of_sorted(sorted_copy(samples));
}

std::optional<MedianInterval> median_interval(std::span<const double> samples) {
  const std::size_t k = rank_of_low(samples.size());
  if (k == 0) return std::nullopt;
  const std::vector<double> sorted = sorted_copy(samples);
  return MedianInterval{median_of_sorted(sorted), sorted[k - 1], sorted[sorted.size() - k]};
}

Stop StoppingRule::decide(std::span<const double> samples, double elapsed_s) {
  const bool enough = samples.size() >= kMinSamples || elapsed_s >= sample_budget_s_;
  if (elapsed_s < min_s_ || !enough) return Stop::not_yet;
  const bool time_is_up = elapsed_s >= time_limit_s_;
  if (samples.size() >= next_look_ || time_is_up) {
    next_look_ = samples.size() + 1 + samples.size() / 10;
    const auto interval = median_interval(samples);
    if (interval && interval->relative_half_width() <= kTarget) return Stop::converged;
  }
  return time_is_up ? Stop::time_limit : Stop::not_yet;
}

}  // namespace longca
