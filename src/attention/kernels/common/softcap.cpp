#include "attention/kernels/common/softcap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace longca {
namespace {

// tanh(x) / x in x². Minimax over |x| ≤ reach for the relative error: 1.2 and 1.1 · 2⁻²⁴, and 4.2
// and 3.7 · 2⁻²⁴ as float32 computes the forward pass.
constexpr double kNearReach = 0.18;
constexpr std::array<double, 3> kNear = {1, -0.3333093786202799, 0.1309333495982046};
constexpr double kBriefReach = 0.2;
constexpr double kMiddleReach = 0.8;
constexpr std::array<double, 6> kMiddle = {1,
                                           -0.3333286643028259,
                                           0.1332276612520218,
                                           -0.053176313638687134,
                                           0.01919076405465603,
                                           -0.004410885740071535};

/// The square of the product at which |x| is `reach`.
float squared_reach(double reach, double slope) {
  return static_cast<float>(reach / slope * (reach / slope));
}

/// `factor` times terms of x² as factors of a polynomial of the product's square.
template <std::size_t kTerms>
void set_factors(const double* terms, double factor, double slope, float (&factors)[kTerms]) {
  for (std::size_t i = 0; i < kTerms; ++i) {
    factors[i] = static_cast<float>(terms[i] * factor);
    factor *= slope * slope;
  }
}

/// Makes a polynomial of x one of x − shift.
template <std::size_t kTerms>
void shift_argument(double shift, std::array<double, kTerms>& terms) {
  for (std::size_t i = 0; i + 1 < kTerms; ++i) {
    for (std::size_t j = kTerms - 1; j-- > i;) terms[j] -= shift * terms[j + 1];
  }
}

/// Slopes between which factors do not leave float32 but for those that vanish (set_middle). Below,
/// near products are capped as with the lowest, where that makes no difference; above, all are far.
constexpr double kMinSlope = 1e-6;
constexpr double kMaxSlope = 1e3;
constexpr double kReachBelowMinSlope = 1e-4;

/// kNear as a completed square.
void set_near(double scale_log2, double slope, Softcap& softcap) {
  const double square = slope * slope;  // x² of a product of 1
  softcap.shift = static_cast<float>(kNear[1] / (2 * kNear[2] * square));
  const double factor = kNear[2] * scale_log2 * square * square;
  softcap.near.factor = static_cast<float>(factor);
  // `rest` makes up for what the other two are rounded by.
  const double shift = static_cast<double>(softcap.shift);
  const double constant = kNear[0] / (kNear[2] * square * square);
  const bool is_normal = std::isnormal(softcap.near.factor);
  const double rounding = is_normal ? factor / static_cast<double>(softcap.near.factor) : 1;
  softcap.near.rest = static_cast<float>(constant * rounding - shift * shift);
}

/// kMiddle of square + shift. Of large caps the last terms vanish in float32, from 250 on at usual
/// scales. They are left out before they are shifted, so that it costs precision where they count,
/// near |x| = 0.8: each shifted factor that vanished would cost all products as much.
void set_middle(double scale_log2, double slope, Softcap& softcap) {
  std::array<double, kMiddle.size()> terms = kMiddle;
  double factor = scale_log2;
  for (double& term : terms) {
    term *= factor;
    if (!std::isnormal(static_cast<float>(term))) term = 0;
    factor *= slope * slope;
  }
  shift_argument(static_cast<double>(softcap.shift), terms);
  std::ranges::transform(terms, softcap.middle.score,
                         [](double term) { return static_cast<float>(term); });
}

/// The bits of square + shift at |x| = `reach`, of 0 from below if it is not negative there.
std::uint32_t reach_bits(double reach, double slope, const Softcap& softcap) {
  const float shifted = squared_reach(reach, slope) + softcap.shift;
  return std::bit_cast<std::uint32_t>(shifted < 0 ? shifted : -0.0F);
}

/// f₀ + f₁ · square with which `factor` times `function` agrees at two x.
template <typename Function>
void interpolate(const Function& function, double low, double high, double factor, double slope,
                 float (&factors)[2]) {
  const double step = (function(high) - function(low)) / (high * high - low * low);
  const std::array<double, 2> terms = {function(low) - step * low * low, step};
  set_factors(terms.data(), factor, slope, factors);
}

/// Interpolates at the zeros of Chebyshev's polynomials of degree 5 (odd) and 4 (even), which is as
/// good as minimax within a few percent. The error of c · tanh(x) is c · reach⁵ / 120.
Softcap::Brief make_brief(double cap, double slope) {
  constexpr double kMaxError = 2.7e-4;
  const double reach = std::min(kBriefReach, std::pow(120 * kMaxError / cap, 0.2));
  const auto at = [&](double part) { return reach * std::cos(part * std::numbers::pi); };
  Softcap::Brief brief;
  brief.reach = squared_reach(reach, slope);
  interpolate([](double x) { return std::tanh(x) / x; }, at(0.3), at(0.1),
              cap * std::numbers::log2e * slope, slope, brief.score);
  interpolate([](double x) { return 1 - std::tanh(x) * std::tanh(x); }, at(0.375), at(0.125), 1,
              slope, brief.slope);
  return brief;
}

}  // namespace

Softcap make_softcap(float cap, float scale) {
  if (cap == 0) return {};
  const double slope = static_cast<double>(scale) / static_cast<double>(cap);
  const double scale_log2 = static_cast<double>(scale) * std::numbers::log2e;
  Softcap softcap;
  softcap.cap = cap;
  softcap.cap_log2 = static_cast<float>(static_cast<double>(cap) * std::numbers::log2e);
  softcap.slope = static_cast<float>(slope);
  softcap.exponent = static_cast<float>(2 * std::numbers::log2e * slope);
  softcap.brief = make_brief(static_cast<double>(cap), slope);
  softcap.middle.reach = squared_reach(kMiddleReach, slope);
  set_factors(kMiddle.data() + 1, slope * slope, slope, softcap.middle.tanh);
  const bool is_low = slope < kMinSlope;
  const double near_slope = is_low ? kMinSlope : slope;
  set_near(scale_log2, near_slope, softcap);
  set_middle(scale_log2, slope, softcap);
  softcap.near.reach_bits =
      reach_bits(is_low ? kReachBelowMinSlope : kNearReach, near_slope, softcap);
  softcap.middle.reach_bits = reach_bits(kMiddleReach, slope, softcap);
  if (slope > kMaxSlope) {
    softcap.near.reach_bits = softcap.middle.reach_bits = ~std::uint32_t{0};
    softcap.brief.reach = softcap.middle.reach = -1;
  }
  return softcap;
}

}  // namespace longca
