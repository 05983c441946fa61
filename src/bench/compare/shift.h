#pragma once

#include <optional>
#include <span>
#include <vector>

namespace longca {

/// The samples of each round, one worker process each, in ms.
using Rounds = std::vector<std::vector<double>>;

/// Samples farther than this share from their round's median are disturbances (an interrupt, a
/// neighbour) and no part of what the program takes.
inline constexpr double kDisturbedSample = 0.10;
/// Rounds farther than this share from the median round are disturbed, where they are at most
/// kMaxDisturbed of all. Processes of one program differ by 5 % (docs/design/compare.md): three
/// times as much, so that a program with two modes of speed keeps both.
inline constexpr double kDisturbedRound = 0.15;
inline constexpr double kMaxDisturbed = 0.3;

/// The mean of the samples within kDisturbedSample of their median: resists outliers as a median
/// does, and is as steady as a mean where samples have two modes. Nothing without a sample above 0.
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
/// other. Disturbed rounds are left out. Nothing where either list has fewer than 2 values.
std::optional<Shift> fit_rounds(std::span<const double> base, std::span<const double> next);
/// Of the logarithms of samples, as they are. Nothing where either list has fewer than 2 values.
std::optional<Shift> fit_samples(std::span<const double> base, std::span<const double> next);

/// Pulls each shift's variance towards that of all, as far as the variances resemble each other,
/// and adds the degrees of freedom that this gives (Smyth 2004, "Linear models and empirical Bayes
/// methods", section 6.2). Changes nothing below kMinToModerate shifts with a variance above 0.
inline constexpr std::size_t kMinToModerate = 10;
void moderate(std::span<Shift> shifts);

}  // namespace longca
