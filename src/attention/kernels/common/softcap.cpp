#include "attention/kernels/common/softcap.h"

#include <array>
#include <cstddef>

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
  return softcap;
}

}  // namespace longca
