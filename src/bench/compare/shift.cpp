#include "bench/compare/shift.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bench/compare/distributions.h"
#include "bench/measure/statistics.h"

namespace longca {
namespace {

/// A value's index, counted from the middle of its list.
double centred(std::size_t i, std::size_t n) {
  return static_cast<double>(i) - (static_cast<double>(n) - 1) / 2;
}

void add_slopes(std::span<const double> values, std::vector<double>& slopes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
    }
  }
}

/// The median slope over all pairs inside either list (Theil and Sen): outliers do not move it.
double shared_slope(std::span<const double> base, std::span<const double> next) {
  std::vector<double> slopes;
  add_slopes(base, slopes);
  add_slopes(next, slopes);
  return median(slopes);
}

struct Point {
  double x;
  double y;
};

std::vector<Point> points_of(std::span<const double> values) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < values.size(); ++i) {
    points.push_back({centred(i, values.size()), values[i]});
  }
  return points;
}

bool are_few(std::ptrdiff_t far, std::size_t all, const Disturbance& kind) {
  return static_cast<double>(far) <= std::floor(kind.max_share * static_cast<double>(all));
}

/// Values less their list's slope, and how far from their middle is far.
struct Levels {
  std::vector<double> values;
  double middle = 0;
  double limit = 0;

  double distance(double level) const { return std::abs(level - middle); }
  bool is_far(double level) const { return distance(level) > limit; }
};

Levels levels_of(std::span<const double> values, double slope, const Disturbance& kind) {
  Levels levels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    levels.values.push_back(values[i] - slope * centred(i, values.size()));
  }
  levels.middle = median(levels.values);
  levels.limit = std::log1p(kind.beyond);
  return levels;
}

/// 5 standard deviations, 1.4826 of the median distance being one: a noisy cell keeps its noise.
double noise_limit(const Levels& levels) {
  std::vector<double> distances;
  for (const double level : levels.values) distances.push_back(levels.distance(level));
  return 5 * 1.4826 * median(distances);
}

/// Whether what is far from the middle of `own` may be left out. What lies near the middle of the
/// other list is no disturbance: both show the same mode of speed, one of them more often.
bool is_disturbed(const Levels& own, const Levels& other, const Disturbance& kind) {
  const double near = std::max(own.limit, other.limit) / 2;
  std::ptrdiff_t far = 0;
  for (const double level : own.values) {
    if (!own.is_far(level)) continue;
    if (other.distance(level) <= near) return false;
    ++far;
  }
  return are_few(far, own.values.size(), kind);
}

std::vector<Point> without_far(std::span<const double> values, const Levels& levels) {
  std::vector<Point> points = points_of(values);
  std::size_t i = 0;
  std::erase_if(points, [&](const Point&) { return levels.is_far(levels.values[i++]); });
  return points;
}

/// Sums of squares and products about the means.
struct Moments {
  double n = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0, yy = 0;
};

Moments moments_of(std::span<const Point> points) {
  Moments sums{.n = static_cast<double>(points.size())};
  for (const auto& [x, y] : points) {
    sums.mean_x += x / sums.n;
    sums.mean_y += y / sums.n;
  }
  for (const auto& [x, y] : points) {
    sums.xx += (x - sums.mean_x) * (x - sums.mean_x);
    sums.xy += (x - sums.mean_x) * (y - sums.mean_y);
    sums.yy += (y - sums.mean_y) * (y - sums.mean_y);
  }
  return sums;
}

constexpr std::size_t kMinForSlope = 3;

Shift fit(std::span<const Point> base, std::span<const Point> next, bool sloped) {
  const Moments a = moments_of(base);
  const Moments b = moments_of(next);
  const double xx = a.xx + b.xx;
  const double slope = sloped ? (a.xy + b.xy) / xx : 0;
  const double apart = b.mean_x - a.mean_x;
  Shift shift;
  shift.difference = b.mean_y - a.mean_y - slope * apart;
  shift.df = a.n + b.n - (sloped ? 3 : 2);
  shift.variance = std::max(0.0, a.yy + b.yy - slope * (a.xy + b.xy)) / shift.df;
  shift.factor = 1 / a.n + 1 / b.n + (sloped ? apart * apart / xx : 0);
  return shift;
}

/// Without disturbed values, or with all of both lists where either has far ones that count.
Shift fit_undisturbed(std::span<const double> base, std::span<const double> next, const Levels& a,
                      const Levels& b, const Disturbance& kind, bool sloped) {
  if (!is_disturbed(a, b, kind) || !is_disturbed(b, a, kind)) {
    return fit(points_of(base), points_of(next), sloped);
  }
  return fit(without_far(base, a), without_far(next, b), sloped);
}

}  // namespace

std::optional<double> round_location(std::span<const double> samples_ms) {
  if (samples_ms.empty()) return std::nullopt;
  const double middle = median(samples_ms);
  if (!(middle > 0) || !std::isfinite(middle)) return std::nullopt;
  const auto is_far = [&](double sample) {
    return std::abs(sample / middle - 1) > kDisturbedSample.beyond;
  };
  const bool drops_far =
      are_few(std::ranges::count_if(samples_ms, is_far), samples_ms.size(), kDisturbedSample);
  double sum = 0;
  double kept = 0;
  for (const double sample : samples_ms) {
    if (drops_far && is_far(sample)) continue;
    sum += sample / middle;
    ++kept;
  }
  return middle * (sum / kept);
}

std::vector<double> round_locations(const Rounds& rounds) {
  std::vector<double> locations;
  for (const std::vector<double>& round : rounds) {
    if (const auto location = round_location(round)) locations.push_back(*location);
  }
  return locations;
}

double Shift::standard_error() const {
  return std::sqrt(variance * factor);
}

std::optional<Shift> fit_rounds(std::span<const double> base, std::span<const double> next) {
  if (base.size() < 2 || next.size() < 2) return std::nullopt;
  const bool sloped = std::min(base.size(), next.size()) >= kMinForSlope;
  const double slope = sloped ? shared_slope(base, next) : 0;
  Levels a = levels_of(base, slope, kDisturbedRound);
  Levels b = levels_of(next, slope, kDisturbedRound);
  a.limit = std::max(a.limit, noise_limit(a));
  b.limit = std::max(b.limit, noise_limit(b));
  return fit_undisturbed(base, next, a, b, kDisturbedRound, sloped);
}

std::optional<Shift> fit_samples(std::span<const double> base, std::span<const double> next) {
  if (base.size() < 2 || next.size() < 2) return std::nullopt;
  return fit_undisturbed(base, next, levels_of(base, 0, kDisturbedSample),
                         levels_of(next, 0, kDisturbedSample), kDisturbedSample, false);
}

void moderate(std::span<Shift> shifts) {
  double n = 0;
  double mean = 0;
  double noise = 0;  // what the logarithms vary by though all true variances be equal
  double all_df = 0;
  const auto logarithm = [](const Shift& shift) {
    return std::log(shift.variance) - digamma(shift.df / 2) + std::log(shift.df / 2);
  };
  for (const Shift& shift : shifts) {
    if (!(shift.variance > 0)) continue;
    ++n;
    mean += logarithm(shift);
    noise += trigamma(shift.df / 2);
    all_df += shift.df;
  }
  if (n < static_cast<double>(kMinToModerate)) return;
  mean /= n;
  double spread = 0;
  for (const Shift& shift : shifts) {
    if (shift.variance > 0) spread += (logarithm(shift) - mean) * (logarithm(shift) - mean);
  }
  const double excess = spread / (n - 1) - noise / n;
  // No more than all shifts together know.
  double prior_df = all_df;
  double prior = std::exp(mean);
  if (excess > 0) {
    prior_df = std::min(all_df, 2 * inverse_trigamma(excess));
    prior = std::exp(mean + digamma(prior_df / 2) - std::log(prior_df / 2));
  }
  for (Shift& shift : shifts) {
    shift.variance = (prior_df * prior + shift.df * shift.variance) / (prior_df + shift.df);
    shift.df = std::min(all_df, shift.df + prior_df);
  }
}

}  // namespace longca
