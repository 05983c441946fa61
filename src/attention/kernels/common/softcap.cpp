#include "attention/kernels/common/softcap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace longca {
namespace {

// tanh(x) / x in x². Minimax over |x| ≤ reach for the relative error: 2.2 and 1.1 · 2⁻²⁴, and 2.9
// and 2.3 · 2⁻²⁴ in float32.
constexpr double kNearReach = 0.2;
constexpr std::array<double, 3> kNear = {1, -0.3332969844341278, 0.1303802728652954};
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
  const double reach = std::min(kNearReach, std::pow(120 * kMaxError / cap, 0.2));
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
  softcap.near.reach = squared_reach(kNearReach, slope);
  set_factors(kNear.data(), scale_log2, slope, softcap.near.score);
  softcap.brief = make_brief(static_cast<double>(cap), slope);
  softcap.middle.reach = squared_reach(kMiddleReach, slope);
  set_factors(kMiddle.data(), scale_log2, slope, softcap.middle.score);
  set_factors(kMiddle.data() + 1, slope * slope, slope, softcap.middle.tanh);
  return softcap;
}

}  // namespace longca
