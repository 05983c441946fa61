#include "bench/compare/distributions.h"

#include <cmath>

namespace longca {
namespace {

constexpr double kTiny = 1e-300;  // keeps the continued fraction from dividing by zero

double away_from_zero(double value) {
  return std::abs(value) < kTiny ? kTiny : value;
}

/// The continued fraction of the incomplete beta function by Lentz's method (Press et al.,
/// Numerical Recipes, 6.4); converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxSteps = 500;
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m <= kMaxSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    value *= c * d;
    if (std::abs(c * d - 1) < 1e-14) break;
  }
  return value;
}

/// I_x(a, b).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return factor * beta_fraction(a, b, x) / a;
  return 1 - factor * beta_fraction(b, a, 1 - x) / b;
}

constexpr double kAsymptotic = 16;  // from here on the series below are good to 1e-13

}  // namespace

double student_two_sided(double t, double df) {
  if (std::isinf(t)) return 0;
  return incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double student_quantile(double p, double df) {
  double low = 0;
  double high = 1;
  while (student_two_sided(high, df) > p && high < 1e12) high *= 2;
  for (int step = 0; step < 100 && high - low > 1e-12 * high; ++step) {
    const double middle = (low + high) / 2;
    (student_two_sided(middle, df) > p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double digamma(double x) {
  double value = 0;
  for (; x < kAsymptotic; ++x) value -= 1 / x;
  const double square = 1 / (x * x);
  return value + std::log(x) - 0.5 / x -
         square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
}

double trigamma(double x) {
  double value = 0;
  for (; x < kAsymptotic; ++x) value += 1 / (x * x);
  const double square = 1 / (x * x);
  return value + 1 / x + square / 2 +
         square / x * (1.0 / 6 - square * (1.0 / 30 - square * (1.0 / 42 - square / 30)));
}

double inverse_trigamma(double y) {
  // trigamma falls from infinity to 0, and 1/x < trigamma(x) < 1/x + 1/x².
  double low = 1 / y;
  double high = low + 1 / std::sqrt(y) + 1;
  for (int step = 0; step < 200 && high - low > 1e-12 * high; ++step) {
    const double middle = (low + high) / 2;
    (trigamma(middle) > y ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace longca
