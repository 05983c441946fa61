#include "attention/kernels/common/softcap.h"

#include <array>
#include <cstddef>

namespace longca {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// Minimax over |x| ≤ reach, in x²; for the relative error of tanh(x) / x: 2.2 and 1.1 · 2⁻²⁴, and
// 2.9 and 2.3 · 2⁻²⁴ in float32.
constexpr double kNearReach = 0.2;
constexpr std::array<double, 3> kNear = {1, -0.3332969844341278, 0.1303802728652954};
constexpr double kMiddleReach = 0.8;
constexpr std::array<double, 6> kMiddle = {1,
                                           -0.3333286643028259,
                                           0.1332276612520218,
                                           -0.053176313638687134,
                                           0.01919076405465603,
                                           -0.004410885740071535};
// Of 1 − tanh² x: 9.1 · 10⁻⁷, a thousandth of what dS loses where it is rounded.
constexpr std::array<double, 3> kNearSlope = {1, -0.9997460463627552, 0.646063949017799};

/// `terms`, of x², times `factor`, as a polynomial of the product's square.
template <std::size_t kTerms>
Softcap::Polynomial<kTerms> of_products(const std::array<double, kTerms>& terms, double factor,
                                        double slope) {
  Softcap::Polynomial<kTerms> polynomial;
  for (std::size_t i = 0; i < kTerms; ++i) {
    polynomial.factors[i] = static_cast<float>(terms.at(i) * factor);
    factor *= slope * slope;
  }
  return polynomial;
}

}  // namespace

Softcap make_softcap(float cap, float scale) {
  if (cap == 0) return {};
  const double slope = static_cast<double>(scale) / static_cast<double>(cap);
  const double scale_log2 = static_cast<double>(scale) * kLog2E;
  const double cap_log2 = static_cast<double>(cap) * kLog2E;
  Softcap softcap;
  softcap.cap = cap;
  softcap.cap_log2 = static_cast<float>(cap_log2);
  softcap.per_cap_log2 = static_cast<float>(1 / cap_log2);
  softcap.exponent = static_cast<float>(2 * kLog2E * slope);
  softcap.near_reach = static_cast<float>(kNearReach / slope);
  softcap.middle_reach = static_cast<float>(kMiddleReach / slope);
  softcap.near = of_products(kNear, scale_log2, slope);
  softcap.near_slope = of_products(kNearSlope, 1, slope);
  softcap.middle = of_products(kMiddle, scale_log2, slope);
  return softcap;
}

}  // namespace longca
