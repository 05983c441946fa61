#include "bench/measure/statistics.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace longca::testing {
namespace {

std::vector<double> counting(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(MedianInterval, HasTheRanksOfTheTables) {
  // W. J. Conover, "Practical Nonparametric Statistics", 1999, table A3: 95 % ranks for the median.
  const std::pair<std::size_t, std::size_t> ranks[] = {{6, 1},   {8, 1},   {9, 2},   {12, 3},
                                                       {15, 4},  {20, 6},  {25, 8},  {30, 10},
                                                       {40, 14}, {50, 18}, {100, 40}};
  for (const auto& [n, rank] : ranks) {
    const auto interval = median_interval(counting(n));
    ASSERT_TRUE(interval) << n;
    EXPECT_EQ(interval->low, static_cast<double>(rank)) << n;
    EXPECT_EQ(interval->high, static_cast<double>(n - rank + 1)) << n;
  }
}

TEST(MedianInterval, NeedsSixSamples) {
  EXPECT_FALSE(median_interval(counting(0)));
  EXPECT_FALSE(median_interval(counting(5)));
}

TEST(MedianInterval, CoversTheTrueMedianAsOftenAsItSays) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> skewed(0.0, 1.0);  // its median is 1
  for (const std::size_t n : {6U, 17U, 100U, 600U}) {
    int covered = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> samples(n);
      for (double& sample : samples) sample = skewed(random);
      const auto interval = median_interval(samples);
      covered += interval->low <= 1.0 && 1.0 <= interval->high ? 1 : 0;
    }
    // At least 95 %; 0.94 leaves four standard deviations to this seed's chance.
    EXPECT_GE(covered, kTrials * 94 / 100) << n;
  }
}

RC_GTEST_PROP(MedianInterval, EnclosesTheMedianInAnyOrder, ()) {
  auto samples = *rc::gen::container<std::vector<double>>(
      rc::gen::map(rc::gen::inRange(1, 100000), [](int value) { return value / 10.0; }));
  RC_PRE(!samples.empty());
  const double before = median(samples);
  const auto interval = median_interval(samples);
  std::ranges::reverse(samples);
  RC_ASSERT(median(samples) == before);
  RC_ASSERT(interval.has_value() == (samples.size() >= 6));
  if (interval) RC_ASSERT(interval->low <= before && before <= interval->high);
}

/// Feeds samples that take their own time, until the rule says stop.
std::pair<Stop, std::size_t> run_rule(StoppingRule rule,
                                      const std::function<double(std::size_t)>& next) {
  std::vector<double> samples;
  double elapsed_s = 0;
  while (true) {
    samples.push_back(next(samples.size()));
    elapsed_s += samples.back() / 1e3;
    const Stop stop = rule.decide(samples, elapsed_s);
    if (stop != Stop::not_yet) return {stop, samples.size()};
  }
}

TEST(StoppingRule, EqualSamplesConvergeAtSeven) {
  const auto [stop, count] = run_rule(StoppingRule(0, 100, 10), [](std::size_t) { return 10.0; });
  EXPECT_EQ(stop, Stop::converged);
  EXPECT_EQ(count, 7U);
}

TEST(StoppingRule, NoiseConvergesLater) {
  std::mt19937 random(3);
  std::normal_distribution<double> noisy(10.0, 0.5);
  const auto [stop, count] =
      run_rule(StoppingRule(0, 1e9, 10), [&](std::size_t) { return noisy(random); });
  EXPECT_EQ(stop, Stop::converged);
  // Half-width ≈ 1.96 · 1.25 · σ/√n = 0.05 at n ≈ 600.
  EXPECT_GT(count, 200U);
  EXPECT_LT(count, 2000U);
}

TEST(StoppingRule, AlternatingSamplesEndAtTheTimeLimit) {
  const auto [stop, count] =
      run_rule(StoppingRule(0, 1.0, 10), [](std::size_t i) { return i % 2 == 0 ? 10.0 : 30.0; });
  EXPECT_EQ(stop, Stop::time_limit);
  EXPECT_EQ(count, 50U);
}

TEST(StoppingRule, SlowSamplesAreAtLeastSeven) {
  const auto slow = [](std::size_t i) { return i % 2 == 0 ? 1000.0 : 2000.0; };
  const auto [stop, count] = run_rule(StoppingRule(0, 1.0, 100), slow);
  EXPECT_EQ(stop, Stop::time_limit);
  EXPECT_EQ(count, 7U);
}

TEST(StoppingRule, TheBudgetEndsEarlier) {
  const auto [stop, count] =
      run_rule(StoppingRule(0, 1.0, 6.0), [](std::size_t) { return 2500.0; });
  EXPECT_EQ(stop, Stop::time_limit);
  EXPECT_EQ(count, 3U);
}

TEST(StoppingRule, ALeastTimeIsKept) {
  const auto [stop, count] =
      run_rule(StoppingRule(1.0, 10.0, 10), [](std::size_t) { return 10.0; });
  EXPECT_EQ(stop, Stop::converged);
  EXPECT_GE(count, 100U);
}

}  // namespace
}  // namespace longca::testing
