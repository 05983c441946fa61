#pragma once

#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/compare/compare_times.h"

namespace longca::testing {

/// Rounds of a program whose true time is known, of one kind of noise.
struct NoiseKind {
  std::string name;
  double process = 0.004;  ///< standard deviation from round to round, as a share
  double sample = 0.01;    ///< from sample to sample
  /// What a round (its index and number of rounds) or a sample has in addition.
  std::function<double(std::mt19937_64&, int, int)> of_round = [](auto&, int, int) { return 0.0; };
  std::function<double(std::mt19937_64&)> of_sample = [](auto&) { return 0.0; };
};

inline double uniform(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>()(random);
}

inline Rounds synthetic_rounds(const NoiseKind& kind, double time_ms, int rounds, int samples,
                               std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Rounds made;
  for (int r = 0; r < rounds; ++r) {
    const double shift = kind.process * normal(random) + kind.of_round(random, r, rounds);
    std::vector<double>& round = made.emplace_back();
    for (int i = 0; i < samples; ++i) {
      const double noise = kind.sample * normal(random) + kind.of_sample(random);
      round.push_back(time_ms * std::exp(shift + noise));
    }
  }
  return made;
}

/// `gap` of a share of all samples, 0 of the others.
inline std::function<double(std::mt19937_64&)> mode(double share, double gap) {
  return [=](std::mt19937_64& random) { return uniform(random) < share ? gap : 0.0; };
}

/// The same of rounds.
inline std::function<double(std::mt19937_64&, int, int)> round_mode(double share, double gap) {
  return [=](std::mt19937_64& random, int, int) { return mode(share, gap)(random); };
}

/// The kinds of docs/design/compare.md.
inline std::vector<NoiseKind> noise_kinds() {
  const auto drift = [](double whole) {
    return [=](std::mt19937_64&, int r, int rounds) { return whole * r / (rounds - 1.0); };
  };
  NoiseKind normal{.name = "normal"};
  NoiseKind noisy{.name = "normal, processes 1 %", .process = 0.01};
  NoiseKind two_modes{.name = "bimodal samples, 5 %", .process = 0.002, .sample = 0.005};
  two_modes.of_sample = mode(0.4, 0.05);
  NoiseKind round_modes{.name = "bimodal rounds, 2 %", .process = 0.002, .sample = 0.005};
  round_modes.of_round = round_mode(0.4, 0.02);
  NoiseKind spikes{.name = "spiked samples, one in ten doubled", .sample = 0.005};
  spikes.of_sample = mode(0.1, std::log(2));
  NoiseKind round_spikes{.name = "spiked rounds, one in twenty +30 %", .sample = 0.005};
  round_spikes.of_round = round_mode(0.05, std::log(1.3));
  NoiseKind drifting{.name = "drifting, 2 % over a run", .process = 0.003};
  drifting.of_round = drift(0.02);
  NoiseKind heating{.name = "drifting, 5 % over a run", .process = 0.003};
  heating.of_round = drift(0.05);
  NoiseKind skewed{.name = "skewed samples, exponential 3 %", .sample = 0.005};
  skewed.of_sample = [](std::mt19937_64& random) { return -0.03 * std::log1p(-uniform(random)); };
  return {normal, noisy, two_modes, round_modes, spikes, round_spikes, drifting, heating, skewed};
}

/// Two modes of speed farther apart than a disturbance is from the others, of samples or of whole
/// rounds: nothing as small as their spread can be found, and nothing may be called.
inline std::vector<NoiseKind> mode_kinds(bool of_rounds) {
  std::vector<NoiseKind> kinds;
  for (const double gap : {0.12, 0.20}) {
    for (const double share : {0.5, 0.4, 0.25}) {
      NoiseKind& kind = kinds.emplace_back();
      kind.process = 0.002;
      kind.sample = 0.005;
      const int slow = static_cast<int>(std::lround(100 * share));
      kind.name = std::string(of_rounds ? "rounds" : "samples") + " in two modes, " +
                  std::to_string(std::lround(100 * gap)) + " %, " + std::to_string(100 - slow) +
                  ":" + std::to_string(slow);
      if (of_rounds) {
        kind.of_round = round_mode(share, std::log1p(gap));
      } else {
        kind.of_sample = mode(share, std::log1p(gap));
      }
    }
  }
  return kinds;
}

/// How often compare_times errs where the truth is known.
struct ErrorRates {
  int identical = 0, false_calls = 0;
  int changed = 0, found = 0, wrong_way = 0;
  int intervals = 0, covered = 0;

  double false_rate() const { return static_cast<double>(false_calls) / identical; }
  double found_rate() const { return static_cast<double>(found) / changed; }
  double coverage() const { return static_cast<double>(covered) / intervals; }
};

struct Shape {
  int rounds = 7;
  int samples = 9;
};

/// Compares `cells` cells, kinds in turn; one in ten takes `change` times as long and one in ten is
/// as much faster.
inline void add_rates(std::span<const NoiseKind> kinds, int cells, double change,
                      std::mt19937_64& random, ErrorRates& rates, Shape shape = {}) {
  std::vector<TimePair> pairs;
  std::vector<double> truths;
  const auto n = static_cast<int>(kinds.size());
  for (int i = 0; i < cells; ++i) {
    const NoiseKind& kind = kinds[static_cast<std::size_t>(i % n)];
    const int draw = std::uniform_int_distribution<int>(0, 9)(random);
    truths.push_back(draw == 0 ? change : draw == 1 ? 1 / change : 1.0);
    const double time = std::exp(8 * uniform(random) - 4);
    pairs.push_back(
        {synthetic_rounds(kind, time, shape.rounds, shape.samples, random),
         synthetic_rounds(kind, time * truths.back(), shape.rounds, shape.samples, random)});
  }
  const auto answers = compare_times(pairs);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const TimeRatio& answer = answers[i].value();
    const bool called = answer.change == Change::slower || answer.change == Change::faster;
    const bool upwards = answer.change == Change::slower;
    ++rates.intervals;
    rates.covered += *answer.low <= truths[i] && truths[i] <= *answer.high ? 1 : 0;
    if (truths[i] == 1) {
      ++rates.identical;
      rates.false_calls += called ? 1 : 0;
    } else {
      ++rates.changed;
      rates.found += called && upwards == (truths[i] > 1) ? 1 : 0;
      rates.wrong_way += called && upwards != (truths[i] > 1) ? 1 : 0;
    }
  }
}

}  // namespace longca::testing
