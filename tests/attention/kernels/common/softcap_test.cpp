#include "attention/kernels/common/softcap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>

namespace longca {
namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kUlp = 0x1p-24;

template <int kTerms>
double evaluate(const Softcap::Polynomial<kTerms>& polynomial, double product) {
  double value = 0;
  for (std::size_t i = kTerms; i-- > 0;) {
    value = value * product * product + static_cast<double>(polynomial.factors[i]);
  }
  return value;
}

/// A cap and a scale as problems have them, and what follows from them.
struct Case {
  float cap = 0.25F * static_cast<float>(*rc::gen::inRange(1, 400));
  float scale = 0.01F * static_cast<float>(*rc::gen::inRange(1, 800));
  Softcap softcap = make_softcap(cap, scale);

  double x(double product) const {
    return product * static_cast<double>(scale) / static_cast<double>(cap);
  }
  double score_log2(double product) const {
    return static_cast<double>(cap) * kLog2E * std::tanh(x(product));
  }
};

/// A part of `reach`, of either sign and not 0.
double product_within(float reach) {
  const double part = static_cast<double>(*rc::gen::inRange(1, 1001)) / 1000;
  return (*rc::gen::arbitrary<bool>() ? part : -part) * static_cast<double>(reach);
}

RC_GTEST_PROP(Softcap, PolynomialsAreTheCappedScoreWithinTheirReach, ()) {
  const Case c;
  const double near = product_within(c.softcap.near_reach);
  const double middle = product_within(c.softcap.middle_reach);
  RC_ASSERT(std::abs(near * evaluate(c.softcap.near, near) / c.score_log2(near) - 1) < 4 * kUlp);
  RC_ASSERT(std::abs(middle * evaluate(c.softcap.middle, middle) / c.score_log2(middle) - 1) <
            4 * kUlp);
}

RC_GTEST_PROP(Softcap, NearSlopeIsThatOfTheHyperbolicTangent, ()) {
  const Case c;
  const double product = product_within(c.softcap.near_reach);
  const double slope = 1 - std::pow(std::tanh(c.x(product)), 2);
  RC_ASSERT(std::abs(evaluate(c.softcap.near_slope, product) / slope - 1) < 1.2e-6);
}

TEST(Softcap, OfZeroIsNone) {
  EXPECT_EQ(make_softcap(0, 0.1F).cap, 0);
  EXPECT_EQ(make_softcap(0, 0.1F).near_reach, 0);
}

}  // namespace
}  // namespace longca
