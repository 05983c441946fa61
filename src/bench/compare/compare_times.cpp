#include "bench/compare/compare_times.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/compare/distributions.h"

namespace longca {
namespace {

/// One pair on its way to an answer; times are logarithms.
struct Estimate {
  std::optional<double> difference{};  ///< nothing: no times to compare
  std::optional<Shift> shift{};        ///< nothing: no spread either
  bool over_rounds = false;
  double slack = 0;  ///< what processes may add to the difference beyond the shift's own error
};

std::vector<double> logarithms(std::span<const double> times) {
  std::vector<double> values;
  for (const double time : times) values.push_back(std::log(time));
  return values;
}

std::vector<double> samples_of(const Rounds& rounds) {
  std::vector<double> samples;
  for (const auto& round : rounds) {
    std::ranges::copy_if(round, std::back_inserter(samples),
                         [](double sample) { return sample > 0; });
  }
  return samples;
}

Estimate estimate(const TimePair& pair) {
  const std::vector<double> base = logarithms(round_locations(pair.base));
  const std::vector<double> next = logarithms(round_locations(pair.next));
  if (base.empty() || next.empty()) return {};
  if (auto shift = fit_rounds(base, next)) return {shift->difference, shift, true, 0};
  // Where one side has a single round, the spread of its samples is all that is known.
  const std::vector<double> base_samples = logarithms(samples_of(pair.base));
  const std::vector<double> next_samples = logarithms(samples_of(pair.next));
  const auto shift = fit_samples(base_samples, next_samples);
  return {shift ? shift->difference : next.front() - base.front(), shift, false,
          std::log1p(kProcessSpread)};
}

/// How probable so large a difference is without any change.
double p_value(const Estimate& estimate) {
  if (!estimate.shift) return 1;
  const double beyond = std::abs(*estimate.difference) - estimate.slack;
  if (beyond <= 0) return 1;
  const double error = estimate.shift->standard_error();
  return error > 0 ? student_two_sided(beyond / error, estimate.shift->df) : 0;
}

/// The largest p that is called a change (Benjamini and Hochberg 1995); -1 for none. Valid also for
/// cells that heat slows down together (Benjamini and Yekutieli 2001).
double largest_called(std::vector<double> p) {
  std::ranges::sort(p);
  const auto n = static_cast<double>(p.size());
  for (std::size_t i = p.size(); i-- > 0;) {
    if (p[i] <= kFalseDiscoveries * static_cast<double>(i + 1) / n) return p[i];
  }
  return -1;
}

/// Remembers the quantiles, since most cells have the same degrees of freedom.
class Quantiles {
 public:
  double of(double df) {
    const auto [place, is_new] = known_.try_emplace(df, 0);
    if (is_new) place->second = student_quantile(kOutside, df);
    return place->second;
  }

 private:
  std::map<double, double> known_;
};

TimeRatio answer(const Estimate& estimate, bool called, double min_effect, Quantiles& quantiles) {
  TimeRatio answer;
  answer.ratio = std::exp(*estimate.difference);
  answer.over_rounds = estimate.over_rounds;
  if (!estimate.shift) return answer;
  const double reach =
      quantiles.of(estimate.shift->df) * estimate.shift->standard_error() + estimate.slack;
  answer.low = std::exp(*estimate.difference - reach);
  answer.high = std::exp(*estimate.difference + reach);
  const double least = std::log1p(min_effect);
  if (called && std::abs(*estimate.difference) >= least) {
    answer.change = *estimate.difference > 0 ? Change::slower : Change::faster;
  } else if (std::abs(*estimate.difference) + reach <= least) {
    answer.change = Change::same;
  }
  return answer;
}

/// Over rounds and inside one round variances are of different things, and are moderated apart.
void moderate_alike(std::vector<Estimate>& estimates, bool over_rounds) {
  std::vector<Shift> shifts;
  for (const Estimate& e : estimates) {
    if (e.shift && e.over_rounds == over_rounds) shifts.push_back(*e.shift);
  }
  moderate(shifts);
  auto next = shifts.begin();
  for (Estimate& e : estimates) {
    if (e.shift && e.over_rounds == over_rounds) e.shift = *next++;
  }
}

}  // namespace

std::string_view to_string(Change change) {
  switch (change) {
    case Change::same:
      return "same";
    case Change::faster:
      return "faster";
    case Change::slower:
      return "slower";
    default:
      return "unclear";
  }
}

std::vector<std::optional<TimeRatio>> compare_times(std::span<const TimePair> pairs,
                                                    double min_effect) {
  std::vector<Estimate> estimates;
  estimates.reserve(pairs.size());
  for (const TimePair& pair : pairs) estimates.push_back(estimate(pair));
  moderate_alike(estimates, true);
  moderate_alike(estimates, false);
  std::vector<double> p;
  for (const Estimate& e : estimates) {
    if (e.difference) p.push_back(p_value(e));
  }
  const double limit = largest_called(p);
  Quantiles quantiles;
  std::vector<std::optional<TimeRatio>> answers;
  auto own_p = p.begin();
  for (const Estimate& e : estimates) {
    if (e.difference) {
      answers.emplace_back(answer(e, *own_p++ <= limit, min_effect, quantiles));
    } else {
      answers.emplace_back();
    }
  }
  return answers;
}

}  // namespace longca
