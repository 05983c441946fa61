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

/// A part of `reach`, of either sign and not 0.
double product_within(float reach) {
  const double part = static_cast<double>(*rc::gen::inRange(1, 1001)) / 1000;
  return (*rc::gen::arbitrary<bool>() ? part : -part) * static_cast<double>(reach);
}

template <int kTerms>
void expect_within_reach(const Case& c, const Softcap::Polynomials<kTerms>& polynomials) {
  const double product = product_within(polynomials.reach);
  const double tanh = std::tanh(c.x(product));
  const double score = product * evaluate(polynomials.score, product);
  RC_ASSERT(std::abs(score / (static_cast<double>(c.cap) * kLog2E * tanh) - 1) < 4 * kUlp);
  const double over_x = 1 + product * product * evaluate(polynomials.tanh, product);
  RC_ASSERT(std::abs(c.x(product) * over_x / tanh - 1) < 4 * kUlp);
}

RC_GTEST_PROP(Softcap, PolynomialsAreTanhAndTheCappedScoreWithinTheirReach, ()) {
  const Case c;
  expect_within_reach(c, c.softcap.near);
  expect_within_reach(c, c.softcap.middle);
}

RC_GTEST_PROP(Softcap, BriefPolynomialsAreTheScoreAndItsSlopeWithinTheirReach, ()) {
  const Case c(*rc::gen::element(1, 100));
  const double product = product_within(c.softcap.brief.reach);
  const double tanh = std::tanh(c.x(product));
  const double score = product * evaluate(c.softcap.brief.score, product) / kLog2E;
  RC_ASSERT(std::abs(score - static_cast<double>(c.cap) * tanh) < 3e-4);
  const double slope = evaluate(c.softcap.brief.slope, product);
  RC_ASSERT(std::abs(slope - (1 - tanh * tanh)) < 1.5e-4);
}

RC_GTEST_PROP(Softcap, ReachesAreOfScoresOverTheCap, ()) {
  const Case c;
  RC_ASSERT(std::abs(c.x(static_cast<double>(c.softcap.near.reach)) - 0.2) < 1e-6);
  RC_ASSERT(std::abs(c.x(static_cast<double>(c.softcap.middle.reach)) - 0.8) < 1e-6);
}

TEST(Softcap, OfZeroIsNone) {
  EXPECT_EQ(make_softcap(0, 0.1F).cap, 0);
  EXPECT_EQ(make_softcap(0, 0.1F).near.reach, 0);
}

}  // namespace
}  // namespace longca
