#include "bench/compare/compare_times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "bench/compare/synthetic_rounds.h"

namespace longca::testing {
namespace {

/// Rounds that differ a little, of a program that takes `time` ms.
Rounds steady(double time) {
  return {{time, time * 1.001, time * 0.999},
          {time * 1.001, time, time * 1.002},
          {time * 0.999, time * 1.001, time},
          {time, time, time * 1.001},
          {time * 1.002, time * 1.001, time * 1.001}};
}

TimeRatio compare_one(const Rounds& base, const Rounds& next, double min_effect = kMinEffect) {
  const std::vector<TimePair> pairs{{base, next}};
  return compare_times(pairs, min_effect).at(0).value();
}

TEST(CompareTimes, TellsSlowerFasterAndSame) {
  const TimeRatio slower = compare_one(steady(1), steady(1.1));
  EXPECT_EQ(slower.change, Change::slower);
  EXPECT_NEAR(slower.ratio, 1.1, 1e-12);
  EXPECT_LT(*slower.low, 1.1);
  EXPECT_GT(*slower.high, 1.1);
  EXPECT_GT(*slower.low, 1.09);
  EXPECT_EQ(compare_one(steady(1), steady(0.9)).change, Change::faster);
  EXPECT_EQ(compare_one(steady(1), steady(1)).change, Change::same);
}

TEST(CompareTimes, AChangeBelowTheLeastEffectIsNoCall) {
  EXPECT_EQ(compare_one(steady(1), steady(1.005)).change, Change::same);
  EXPECT_EQ(compare_one(steady(1), steady(1.005), 0.002).change, Change::slower);
  EXPECT_EQ(compare_one(steady(1), steady(1.03), 0.05).change, Change::same);
  // Sure to differ, by less than matters and maybe by more: neither is shown.
  EXPECT_EQ(compare_one(steady(1), steady(1.0095)).change, Change::unclear);
}

TEST(CompareTimes, OneRoundProvesNothingBelowTheSpreadOfProcesses) {
  const Rounds base{{1, 1.001, 0.999, 1, 1.001}};
  const Rounds three{{1.03, 1.031, 1.029, 1.03, 1.031}};
  const Rounds ten{{1.1, 1.101, 1.099, 1.1, 1.101}};
  EXPECT_EQ(compare_one(base, three).change, Change::unclear);
  EXPECT_FALSE(compare_one(base, three).over_rounds);
  EXPECT_EQ(compare_one(base, ten).change, Change::slower);
  EXPECT_EQ(compare_one(ten, base).change, Change::faster);
  EXPECT_EQ(compare_one(base, base).change, Change::unclear) << "luck of one process";
  EXPECT_EQ(compare_one(steady(1), three).change, Change::unclear) << "rounds on one side only";
}

TEST(CompareTimes, NeedsATimeOnBothSides) {
  const std::vector<TimePair> pairs{
      {{}, steady(1)}, {{{}}, steady(1)}, {steady(1), {{0, 0, 0}}}, {{{1}}, {{2}}}};
  const auto answers = compare_times(pairs);
  EXPECT_FALSE(answers[0] || answers[1] || answers[2]);
  EXPECT_DOUBLE_EQ(answers[3]->ratio, 2);
  EXPECT_EQ(answers[3]->change, Change::unclear) << "one sample has no spread";
  EXPECT_FALSE(answers[3]->low);
}

TEST(CompareTimes, RoundsWithoutAnySpreadAreCompared) {
  const Rounds one(5, {1, 1, 1});
  EXPECT_EQ(compare_one(one, one).change, Change::same);
  EXPECT_EQ(compare_one(one, Rounds(5, {1.5, 1.5, 1.5})).change, Change::slower);
}

RC_GTEST_PROP(CompareTimes, SwappingTheSidesInvertsTheAnswer, ()) {
  const auto times = rc::gen::map(rc::gen::inRange(0, 2000), [](int i) { return i / 1000.0; });
  const auto rounds = rc::gen::container<Rounds>(rc::gen::container<std::vector<double>>(times));
  const Rounds base = *rounds;
  const Rounds next = *rounds;
  const std::vector<TimePair> there{{base, next}};
  const std::vector<TimePair> back{{next, base}};
  const auto forth = compare_times(there).at(0);
  const auto reverse = compare_times(back).at(0);
  RC_ASSERT(forth.has_value() == reverse.has_value());
  if (!forth) return;
  RC_ASSERT(std::isfinite(forth->ratio) && forth->ratio > 0);
  RC_ASSERT(std::abs(forth->ratio * reverse->ratio - 1) < 1e-9);
  RC_ASSERT((forth->change == Change::slower) == (reverse->change == Change::faster));
  if (forth->low) {
    RC_ASSERT(*forth->low <= forth->ratio);
    RC_ASSERT(forth->ratio <= *forth->high);
  }
}

/// docs/design/compare.md has the same rates of more cells, measured by benchmarks/compare_rates.
TEST(CompareRates, EveryKindOfNoiseKeepsWhatThePagePromises) {
  for (const NoiseKind& kind : noise_kinds()) {
    std::mt19937_64 random(1);
    ErrorRates rates;
    for (int run = 0; run < 4; ++run) add_rates({&kind, 1}, 500, 1.03, random, rates);
    EXPECT_LE(rates.false_rate(), 0.01) << kind.name;
    EXPECT_GE(rates.found_rate(), 0.95) << kind.name;
    EXPECT_EQ(rates.wrong_way, 0) << kind.name;
    EXPECT_GE(rates.coverage(), 0.93) << kind.name;
  }
}

TEST(CompareRates, CellsOfManyKindsInOneFileToo) {
  const std::vector<NoiseKind> kinds = noise_kinds();
  std::mt19937_64 random(2);
  ErrorRates rates;
  for (int run = 0; run < 4; ++run) add_rates(kinds, 900, 1.03, random, rates);
  EXPECT_LE(rates.false_rate(), 0.01);
  EXPECT_GE(rates.found_rate(), 0.95);
  EXPECT_EQ(rates.wrong_way, 0);
  EXPECT_GE(rates.coverage(), 0.93);
}

/// A program of two modes that is compared with itself.
ErrorRates rates_of_modes(const NoiseKind& kind, Shape shape) {
  std::mt19937_64 random(3);
  ErrorRates rates;
  for (int run = 0; run < 4; ++run) add_rates({&kind, 1}, 500, 1, random, rates, shape);
  return rates;
}

TEST(CompareRates, ModesFarApartAreNoChange) {
  for (const bool of_rounds : {false, true}) {
    for (const NoiseKind& kind : mode_kinds(of_rounds)) {
      EXPECT_LE(rates_of_modes(kind, {}).false_rate(), 0.01) << kind.name;
    }
  }
}

TEST(CompareRates, OneRoundOfModesFarApartIsNoChange) {
  for (const int samples : {7, 9, 20, 100}) {
    for (const NoiseKind& kind : mode_kinds(false)) {
      EXPECT_LE(rates_of_modes(kind, {1, samples}).false_rate(), 0.01)
          << kind.name << ", samples: " << samples;
    }
  }
}

/// sdpa, full, 16K tokens, 64:8, forward, in results/h200/dense.jsonl.gz.
TEST(CompareRates, SamplesOfAnH200InTwoModesAreNoChange) {
  const std::vector<double> measured{13.07, 13.08, 13.08, 14.85, 15.00, 14.86, 14.84};
  std::mt19937_64 random(4);
  const auto drawn = [&](int rounds) {
    Rounds made(static_cast<std::size_t>(rounds));
    for (auto& round : made) {
      std::uniform_int_distribution<std::size_t> any(0, measured.size() - 1);
      for (std::size_t i = 0; i < measured.size(); ++i) round.push_back(measured[any(random)]);
    }
    return made;
  };
  for (const int rounds : {1, 7}) {
    std::vector<TimePair> pairs;
    for (int i = 0; i < 2000; ++i) pairs.push_back({drawn(rounds), drawn(rounds)});
    const auto called = std::ranges::count_if(compare_times(pairs), [](const auto& answer) {
      return answer->change == Change::slower || answer->change == Change::faster;
    });
    EXPECT_LE(called, 20) << rounds << " rounds";
  }
}

TEST(CompareTimes, AFewDisturbedSamplesAndRoundsDoNotCount) {
  const Rounds one{{1, 1.001, 0.999, 1, 1.001, 1.5, 1.3}};
  EXPECT_NEAR(compare_one(one, one).high.value(), 1.05, 0.01);
  Rounds disturbed = steady(1);
  disturbed[2] = {1.4, 1.41, 1.4};
  EXPECT_EQ(compare_one(steady(1), disturbed).change, Change::same);
  EXPECT_EQ(compare_one(disturbed, steady(1.03)).change, Change::slower);
}

TEST(CompareTimes, WhatIsAsSlowAsTheOtherSideIsAMode) {
  // Two of seven rounds are slow, and five of seven: without them the sides would be 20 % apart.
  const Rounds fast = steady(1);
  const Rounds slow = steady(1.2);
  Rounds base = fast;
  base.insert(base.end(), slow.begin(), slow.begin() + 2);
  Rounds next = slow;
  next.insert(next.end(), fast.begin(), fast.begin() + 2);
  EXPECT_EQ(compare_one(base, next).change, Change::unclear);
  const Rounds one{{1, 1.001, 0.999, 1, 1.001, 1.2, 1.2}};
  const Rounds other{{1.2, 1.201, 1.199, 1.2, 1.201, 1, 1}};
  EXPECT_EQ(compare_one(one, other).change, Change::unclear);
}

}  // namespace
}  // namespace longca::testing
