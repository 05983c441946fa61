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

/// The capped score in log2 as the forward kernels compute it, in float32.
float forward_score(const Softcap& softcap, float product) {
  const float shifted = std::fma(product, product, softcap.shift);
  const auto bits = std::bit_cast<std::uint32_t>(shifted);
  if (bits >= softcap.near.reach_bits) {
    return product * std::fma(shifted, shifted, softcap.near.rest) * softcap.near.factor;
  }
  float value = softcap.middle.score[5];
  for (int i = 4; i >= 0; --i) value = std::fma(value, shifted, softcap.middle.score[i]);
  if (bits >= softcap.middle.reach_bits || product * product <= softcap.middle.reach) {
    return product * value;
  }
  const float half = 1 / (1 + std::exp2(product * softcap.exponent));
  return std::fma(-2.0F, half, 1.0F) * softcap.cap_log2;
}

/// Also at the ends of what a problem may have: no factor leaves float32 where it is used.
TEST(Softcap, ForwardScoresAreRightToFloat32) {
  for (const float cap : {1e-3F, 0.3F, 5.0F, 30.0F, 50.0F, 1e4F, 1e6F}) {
    for (const float scale : {1e-30F, 1e-10F, 1e-4F, 0.03F, 0.0883883F, 1.0F, 20.0F, 1e9F, 1e30F}) {
      const Softcap softcap = make_softcap(cap, scale);
      for (float product = 1e-6F; product < 1e9F; product *= 1.37F) {
        const double x =
            static_cast<double>(product) * static_cast<double>(scale) / static_cast<double>(cap);
        // Of caps from 10⁴ on, beside usual scales, the last factors are below float32's range:
        // terms of products within a fiftieth of the cap need them not.
        if (!std::isnormal(softcap.middle.score[5]) && x > 0.02) break;
        const double expected = static_cast<double>(cap) * kLog2E * std::tanh(x);
        const double absolute = x > 0.8 ? static_cast<double>(softcap.cap_log2) : 0;
        const double bound = 7 * kUlp * (std::abs(expected) + absolute) + 1e-20;
        for (const float sign : {1.0F, -1.0F}) {
          ASSERT_NEAR(sign * forward_score(softcap, sign * product), expected, bound)
              << "cap " << cap << ", scale " << scale << ", product " << sign * product;
        }
      }
      EXPECT_EQ(forward_score(softcap, 0), 0) << "cap " << cap << ", scale " << scale;
      const double end = static_cast<double>(forward_score(softcap, 1e15F));
      EXPECT_LE(end, static_cast<double>(softcap.cap_log2)) << "cap " << cap << ", scale " << scale;
      EXPECT_TRUE(std::isnan(forward_score(softcap, std::numeric_limits<float>::quiet_NaN())));
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
