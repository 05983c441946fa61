#pragma once

#include <optional>
#include <span>
#include <vector>

namespace longca {

/// The samples of each round, one worker process each, in ms.
using Rounds = std::vector<std::vector<double>>;

/// What an interrupt or a neighbour adds, and the program does not take: values farther than
/// `beyond`, a share, from the middle of their list, where they are at most `max_share` of it. More
/// of them are a mode of speed that the program has, and count.
struct Disturbance {
  double beyond;
  double max_share;
};
inline constexpr Disturbance kDisturbedSample{0.10, 1.0 / 3};
/// Processes of one program differ by 5 % (docs/design/compare.md): three times as much, so that a
/// program with two modes of speed keeps both.
inline constexpr Disturbance kDisturbedRound{0.15, 0.3};

/// The mean of the samples, without disturbed ones: resists outliers as a median does, and is as
/// steady as a mean where samples have two modes. Nothing without a sample above 0.
std::optional<double> round_location(std::span<const double> samples_ms);
/// Of each round that has one, in order.
std::vector<double> round_locations(const Rounds& rounds);

/// How far two lists of logarithms of times are apart.
struct Shift {
  double difference = 0;  ///< mean of `next` - mean of `base`
  double variance = 0;    ///< of one value about its list's line
  double factor = 0;      ///< variance of `difference` ÷ variance of one value
  double df = 0;          ///< degrees of freedom of `variance`

  double standard_error() const;
};

/// Of the logarithms of round_locations: a least-squares fit with a slope over the round that both
/// lists share where each has 3 values, since heat makes the rounds of a run slower one after the
/// other. Disturbed rounds are left out, unless one is as slow as the other list's middle: a mode
/// that both have. Then, as where either list has too many, all of both count. Nothing where
/// either list has fewer than 2 values.
std::optional<Shift> fit_rounds(std::span<const double> base, std::span<const double> next);
/// Of the logarithms of samples, by the same rule. Nothing where either list has fewer than 2.
std::optional<Shift> fit_samples(std::span<const double> base, std::span<const double> next);

/// Pulls each shift's variance towards that of all, as far as the variances resemble each other,
/// and adds the degrees of freedom that this gives (Smyth 2004, "Linear models and empirical Bayes
/// methods", section 6.2). Changes nothing below kMinToModerate shifts with a variance above 0.
inline constexpr std::size_t kMinToModerate = 10;
void moderate(std::span<Shift> shifts);

}  // namespace longca
