#include "bench/compare/compare_times.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

}  // namespace
}  // namespace longca::testing
