#include "bench/compare/distributions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace longca::testing {
namespace {

TEST(Distributions, StudentAgreesWithTables) {
  // Two-sided 5 % and 1 % points, as printed in every table of t.
  EXPECT_NEAR(student_quantile(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 12), 2.17881, 1e-5);
  EXPECT_NEAR(student_quantile(0.01, 11), 3.10581, 1e-5);
  EXPECT_NEAR(student_quantile(0.05, 1e7), 1.959964, 1e-5);
  EXPECT_NEAR(student_two_sided(2.17881, 12), 0.05, 1e-6);
  EXPECT_DOUBLE_EQ(student_two_sided(0, 5), 1);
  EXPECT_EQ(student_two_sided(std::numeric_limits<double>::infinity(), 5), 0);
}

TEST(Distributions, OneDegreeOfFreedomIsCauchy) {
  for (const double t : {0.1, 1.0, 7.0, 1e6}) {
    const double exact = 1 - 2 * std::atan(t) / M_PI;
    EXPECT_NEAR(student_two_sided(t, 1), exact, 1e-12);
  }
}

TEST(Distributions, DigammaAndTrigammaAgreeWithKnownValues) {
  constexpr double kEulerGamma = 0.57721566490153286;
  EXPECT_NEAR(digamma(1), -kEulerGamma, 1e-12);
  EXPECT_NEAR(digamma(0.5), -kEulerGamma - 2 * std::log(2), 1e-12);
  EXPECT_NEAR(trigamma(1), M_PI * M_PI / 6, 1e-12);
  EXPECT_NEAR(trigamma(0.5), M_PI * M_PI / 2, 1e-12);
  for (const double x : {0.01, 0.7, 5.5, 1000.0}) {
    EXPECT_NEAR(inverse_trigamma(trigamma(x)) / x, 1, 1e-9);
  }
}

}  // namespace
}  // namespace longca::testing
