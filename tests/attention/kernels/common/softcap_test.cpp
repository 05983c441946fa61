#include "attention/kernels/common/softcap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>

namespace longca {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kUlp = 0x1p-24;

template <std::size_t kTerms>
double evaluate(const float (&factors)[kTerms], double product) {
  double value = 0;
  for (std::size_t i = kTerms; i-- > 0;) {
    value = value * product * product + static_cast<double>(factors[i]);
  }
  return value;
}

/// A cap and a scale as problems have them, and what follows from them.
struct Case {
  explicit Case(int times = 1)
      : cap(0.25F * static_cast<float>(times * *rc::gen::inRange(1, 400))) {}

  float cap;
  float scale = 0.01F * static_cast<float>(*rc::gen::inRange(1, 800));
  Softcap softcap = make_softcap(cap, scale);

  double x(double product) const {
    return product * static_cast<double>(scale) / static_cast<double>(cap);
  }
};

/// Within a reach, which is a product's square; of either sign and not 0.
double product_within(float reach) {
  const double part = static_cast<double>(*rc::gen::inRange(1, 1001)) / 1000;
  return (*rc::gen::arbitrary<bool>() ? part : -part) * std::sqrt(static_cast<double>(reach));
}

/// `score`, of a product's square, times the product is the capped score in log2.
template <std::size_t kTerms>
void expect_score(const Case& c, double product, const float (&score)[kTerms]) {
  const double expected = static_cast<double>(c.cap) * kLog2E * std::tanh(c.x(product));
  RC_ASSERT(std::abs(product * evaluate(score, product) / expected - 1) < 4 * kUlp);
}

RC_GTEST_PROP(Softcap, PolynomialsAreTheCappedScoreWithinTheirReach, ()) {
  const Case c;
  expect_score(c, product_within(c.softcap.near.reach), c.softcap.near.score);
  // Of a large cap and a small scale the last factors leave float32's normal range.
  RC_PRE(std::isnormal(c.softcap.middle.score[5]) && std::isnormal(c.softcap.middle.tanh[4]));
  const double product = product_within(c.softcap.middle.reach);
  expect_score(c, product, c.softcap.middle.score);
  const double over_x = 1 + product * product * evaluate(c.softcap.middle.tanh, product);
  RC_ASSERT(std::abs(c.x(product) * over_x / std::tanh(c.x(product)) - 1) < 4 * kUlp);
}

RC_GTEST_PROP(Softcap, BriefPolynomialsAreTheScoreAndItsSlopeWithinTheirReach, ()) {
  const Case c(*rc::gen::element(1, 100));
  const double product = product_within(c.softcap.brief.reach);
  const double tanh = std::tanh(c.x(product));
  const double score = product * evaluate(c.softcap.brief.score, product) / kLog2E;
  // Factors are rounded to float32.
  const double rounding = kUlp * std::abs(score);
  RC_ASSERT(std::abs(score - static_cast<double>(c.cap) * tanh) < 3e-4 + rounding);
  RC_ASSERT(std::abs(evaluate(c.softcap.brief.slope, product) - (1 - tanh * tanh)) < 1.5e-4);
}

RC_GTEST_PROP(Softcap, ReachesAreOfScoresOverTheCap, ()) {
  const Case c;
  const auto x_at = [&](float reach) { return c.x(std::sqrt(static_cast<double>(reach))); };
  RC_ASSERT(std::abs(x_at(c.softcap.near.reach) - 0.2) < 1e-6);
  RC_ASSERT(std::abs(x_at(c.softcap.middle.reach) - 0.8) < 1e-6);
  RC_ASSERT(std::abs(x_at(c.softcap.brief.reach) - 0.2) < 1e-6);
}

TEST(Softcap, OfZeroIsNone) {
  EXPECT_EQ(make_softcap(0, 0.1F).cap, 0);
  EXPECT_EQ(make_softcap(0, 0.1F).near.reach, 0);
}

}  // namespace
}  // namespace longca
