#include "attention/kernels/common/softcap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

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
double product_within(double reach) {
  const double part = static_cast<double>(*rc::gen::inRange(1, 1001)) / 1000;
  return (*rc::gen::arbitrary<bool>() ? part : -part) * std::sqrt(reach);
}

/// The product's square at which square + shift has these bits.
double reach_of(const Softcap& softcap, std::uint32_t bits) {
  return static_cast<double>(std::bit_cast<float>(bits)) - static_cast<double>(softcap.shift);
}

/// The capped score over the product by each polynomial, but for the rounding of kernels.
double near_score_over_product(const Softcap& softcap, double product) {
  const double shifted = product * product + static_cast<double>(softcap.shift);
  return static_cast<double>(softcap.near.factor) *
         (shifted * shifted + static_cast<double>(softcap.near.rest));
}
double middle_score_over_product(const Softcap& softcap, double product) {
  const double shifted = product * product + static_cast<double>(softcap.shift);
  double value = 0;
  for (int i = 5; i >= 0; --i)
    value = value * shifted + static_cast<double>(softcap.middle.score[i]);
  return value;
}

/// `score_over_product` times the product is the capped score in log2.
void expect_score(const Case& c, double product, double score_over_product) {
  const double expected = static_cast<double>(c.cap) * kLog2E * std::tanh(c.x(product));
  RC_ASSERT(std::abs(product * score_over_product / expected - 1) < 4 * kUlp);
}

RC_GTEST_PROP(Softcap, PolynomialsAreTheCappedScoreWithinTheirReach, ()) {
  const Case c;
  const double near = product_within(reach_of(c.softcap, c.softcap.near.reach_bits));
  expect_score(c, near, near_score_over_product(c.softcap, near));
  // Of a large cap and a small scale the last factors leave float32's normal range.
  RC_PRE(std::isnormal(c.softcap.middle.score[5]) && std::isnormal(c.softcap.middle.tanh[4]));
  const double product = product_within(c.softcap.middle.reach);
  expect_score(c, product, middle_score_over_product(c.softcap, product));
  const double over_x = 1 + product * product * evaluate(c.softcap.middle.tanh, product);
  RC_ASSERT(std::abs(c.x(product) * over_x / std::tanh(c.x(product)) - 1) < 4 * kUlp);
}

enum class Range { near, middle, far };

/// Where the bits of product² + shift say that the product is.
Range range_of(const Softcap& softcap, float product) {
  const auto bits = std::bit_cast<std::uint32_t>(std::fma(product, product, softcap.shift));
  if (bits >= softcap.near.reach_bits) return Range::near;
  return bits >= softcap.middle.reach_bits ? Range::middle : Range::far;
}

/// The capped score in log2 as kernels compute it in float32, in the product's range or a farther
/// one, which others of its warp may be in.
float capped_score(const Softcap& softcap, float product, Range range) {
  const float shifted = std::fma(product, product, softcap.shift);
  if (range == Range::near) {
    return product * std::fma(shifted, shifted, softcap.near.rest) * softcap.near.factor;
  }
  float value = softcap.middle.score[5];
  for (int i = 4; i >= 0; --i) value = std::fma(value, shifted, softcap.middle.score[i]);
  if (range == Range::middle || product * product <= softcap.middle.reach) return product * value;
  const float half = 1 / (1 + std::exp2(product * softcap.exponent));
  return std::fma(-2.0F, half, 1.0F) * softcap.cap_log2;
}

/// What the terms of tanh(x) / x come to that leave float32's normal range as factors of a product,
/// as the last ones do where caps are large.
double vanished_terms(float cap, float scale, double x) {
  const double slope = static_cast<double>(scale) / static_cast<double>(cap);
  double factor = static_cast<double>(scale) * kLog2E;
  double square = 1;
  double sum = 0;
  for (const double term : {1.0, 0.3334, 0.1333, 0.0532, 0.0192, 0.0045}) {
    if (!std::isnormal(static_cast<float>(term * factor))) sum += term * square;
    factor *= slope * slope;
    square *= x * x;
  }
  return sum;
}

/// What a score may be off by: 7 ulps, of the cap as well where exponentials compute it, and what
/// the middle polynomial has no terms for.
double allowed_error(const Softcap& softcap, float scale, double x, double score) {
  const bool by_exponentials = x > 0.8 || softcap.middle.reach < 0;
  const double of_cap = by_exponentials ? static_cast<double>(softcap.cap_log2) : 0;
  const double vanished = by_exponentials ? 0 : vanished_terms(softcap.cap, scale, x);
  return 7 * kUlp * (score + of_cap) + 1.5 * vanished * score + 1e-20;
}

/// At the ends of what a problem may have, too.
TEST(Softcap, ScoresAreRightToFloat32InTheirRangeAndBeyond) {
  for (const float cap : {1e-3F, 0.3F, 5.0F, 30.0F, 50.0F, 250.0F, 400.0F, 500.0F, 1e3F, 1e4F, 9e4F,
                          1e5F, 100200.0F, 2e5F, 1e6F}) {
    for (const float scale : {1e-30F, 1e-10F, 1e-4F, 1.0F / 32, 1.0F / 16, 0.071051635F, 0.0883883F,
                              1.0F, 20.0F, 5e3F, 1e6F, 1e9F, 1e30F}) {
      SCOPED_TRACE(std::to_string(cap) + ", scale " + std::to_string(scale));
      const Softcap softcap = make_softcap(cap, scale);
      EXPECT_GE(softcap.near.reach_bits, 1U << 31);
      EXPECT_GE(softcap.middle.reach_bits, 1U << 31);
      for (float product = 1e-6F; product < 1e9F; product *= 1.37F) {
        const double x =
            static_cast<double>(product) * static_cast<double>(scale) / static_cast<double>(cap);
        const double expected = static_cast<double>(cap) * kLog2E * std::tanh(x);
        const double bound = allowed_error(softcap, scale, x, expected);
        for (const Range range : {Range::near, Range::middle, Range::far}) {
          if (range < range_of(softcap, product)) continue;
          if (range == Range::middle && softcap.middle.reach < 0) continue;  // never
          for (const float sign : {1.0F, -1.0F}) {
            ASSERT_NEAR(sign * capped_score(softcap, sign * product, range), expected, bound)
                << "product " << sign * product << ", x " << x << ", range " << int(range);
          }
        }
      }
      const Range of_zero = range_of(softcap, 0);
      EXPECT_EQ(capped_score(softcap, 0, of_zero), 0);
      EXPECT_LE(static_cast<double>(capped_score(softcap, 1e15F, range_of(softcap, 1e15F))),
                static_cast<double>(softcap.cap_log2));
      const float nan = std::numeric_limits<float>::quiet_NaN();
      EXPECT_EQ(range_of(softcap, nan), Range::far);
      EXPECT_TRUE(std::isnan(capped_score(softcap, nan, Range::far)));
    }
  }
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
  const auto x_at = [&](double reach) { return c.x(std::sqrt(reach)); };
  // Of sums in float32, the first of which is 40 times as large as the square.
  RC_ASSERT(std::abs(x_at(reach_of(c.softcap, c.softcap.near.reach_bits)) - 0.18) < 1e-5);
  RC_ASSERT(std::abs(x_at(reach_of(c.softcap, c.softcap.middle.reach_bits)) - 0.8) < 1e-5);
  RC_ASSERT(std::abs(x_at(c.softcap.middle.reach) - 0.8) < 1e-6);
  RC_ASSERT(std::abs(x_at(c.softcap.brief.reach) - 0.2) < 1e-6);
}

/// As unsigned integers, square + shift descends as the product's size grows, past 0 as well.
RC_GTEST_PROP(Softcap, TheBitsOfShiftedSquaresTellTheRange, ()) {
  const Case c;
  const double x = 0.001 * *rc::gen::inRange(0, 3000);
  const auto product =
      static_cast<float>(x * static_cast<double>(c.cap) / static_cast<double>(c.scale));
  const auto bits = std::bit_cast<std::uint32_t>(std::fma(product, product, c.softcap.shift));
  RC_ASSERT((bits >= c.softcap.near.reach_bits) == (x < 0.18) || std::abs(x - 0.18) < 1e-4);
  RC_ASSERT((bits >= c.softcap.middle.reach_bits) == (x < 0.8) || std::abs(x - 0.8) < 1e-4);
}

TEST(Softcap, OfZeroIsNone) {
  EXPECT_EQ(make_softcap(0, 0.1F).cap, 0);
  EXPECT_EQ(make_softcap(0, 0.1F).near.factor, 0);
}

}  // namespace
}  // namespace longca
