#include "attention/kernels/common/softcap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace longca {
namespace {

constexpr double kLog2E = 1.4426950408889634;

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

/// `terms`, of x², as polynomials of the product's square.
template <std::size_t kTerms>
Softcap::Polynomials<kTerms> of_products(const std::array<double, kTerms>& terms, double reach,
                                         double slope, double scale_log2) {
  Softcap::Polynomials<kTerms> polynomials;
  polynomials.reach = static_cast<float>(reach / slope);
  double power = 1;
  for (std::size_t i = 0; i < kTerms; ++i) {
    polynomials.score[i] = static_cast<float>(terms.at(i) * power * scale_log2);
    if (i > 0) polynomials.tanh[i - 1] = static_cast<float>(terms.at(i) * power);
    power *= slope * slope;
  }
  return polynomials;
}

/// f₀ + f₁ · square with which `function` agrees at two x, as a polynomial of the product's square.
template <typename Function>
void interpolate(const Function& function, double low, double high, double slope,
                 float (&factors)[2]) {
  const double step = (function(high) - function(low)) / (high * high - low * low);
  factors[0] = static_cast<float>(function(low) - step * low * low);
  factors[1] = static_cast<float>(step * slope * slope);
}

/// Interpolation at the zeros of Chebyshev's polynomials of degree 5 (odd) and 4 (even), as good as
/// minimax within a few percent. The error of c · tanh(x) is c · reach⁵ / 120.
Softcap::Brief make_brief(double cap, double slope) {
  constexpr double kMaxError = 2.7e-4;
  using std::numbers::pi;
  const double reach = std::min(kNearReach, std::pow(120 * kMaxError / cap, 0.2));
  Softcap::Brief brief;
  brief.reach = static_cast<float>(reach / slope);
  const auto score = [&](double x) { return cap * kLog2E * std::tanh(x) / x * slope; };
  interpolate(score, reach * std::cos(0.3 * pi), reach * std::cos(0.1 * pi), slope, brief.score);
  const auto slope_at = [](double x) { return 1 - std::tanh(x) * std::tanh(x); };
  interpolate(slope_at, reach * std::cos(0.375 * pi), reach * std::cos(0.125 * pi), slope,
              brief.slope);
  return brief;
}

}  // namespace

Softcap make_softcap(float cap, float scale) {
  if (cap == 0) return {};
  const double slope = static_cast<double>(scale) / static_cast<double>(cap);
  const double scale_log2 = static_cast<double>(scale) * kLog2E;
  Softcap softcap;
  softcap.cap = cap;
  softcap.cap_log2 = static_cast<float>(static_cast<double>(cap) * kLog2E);
  softcap.slope = static_cast<float>(slope);
  softcap.exponent = static_cast<float>(2 * kLog2E * slope);
  softcap.near = of_products(kNear, kNearReach, slope, scale_log2);
  softcap.middle = of_products(kMiddle, kMiddleReach, slope, scale_log2);
  softcap.brief = make_brief(static_cast<double>(cap), slope);
  return softcap;
}

}  // namespace longca
