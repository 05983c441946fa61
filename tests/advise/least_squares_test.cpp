#include "advise/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace longca::advise {
namespace {

std::vector<FitRow> rows_of_law(double constant, double slope) {
  std::vector<FitRow> rows;
  for (int i = 1; i <= 12; ++i) {
    const double x = std::exp2(i);
    rows.push_back({{1.0, x}, constant + slope * x});
  }
  return rows;
}

TEST(LeastSquares, FindsTheLawThatRowsFollow) {
  const auto found = fit_non_negative(rows_of_law(3, 0.25));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(found[0], 3, 1e-3);
  EXPECT_NEAR(found[1], 0.25, 1e-4);
}

TEST(LeastSquares, SingleRowsFarOffDoNotMatter) {
  auto rows = rows_of_law(3, 0.25);
  rows[5].value *= 4;
  const auto found = fit_non_negative(rows);
  EXPECT_NEAR(found[0] + 1024 * found[1], 3 + 256, 0.02 * 259);
}

TEST(LeastSquares, RowsThatWeighMoreSetTheLaw) {
  auto rows = rows_of_law(3, 0.25);
  for (FitRow row : rows_of_law(6, 0.5)) {
    row.weight = 0.01;
    rows.push_back(row);
  }
  const auto found = fit_non_negative(rows);
  EXPECT_NEAR(found[0], 3, 0.1);
  EXPECT_NEAR(found[1], 0.25, 0.01);
}

TEST(LeastSquares, NoCoefficientIsNegative) {
  std::vector<FitRow> rows;
  for (int i = 1; i <= 8; ++i) rows.push_back({{static_cast<double>(i), 1.0}, 10.0 - i});
  for (const double coefficient : fit_non_negative(rows)) EXPECT_GE(coefficient, 0);
  EXPECT_TRUE(fit_non_negative({}).empty());
}

TEST(LeastSquares, SolvesAPositiveDefiniteSystemAndRefusesAnother) {
  std::vector<double> matrix{4, 2, 2, 3};
  const auto x = solve_positive_definite(matrix, std::vector<double>{8, 7});
  EXPECT_NEAR(x[0], 1.25, 1e-12);
  EXPECT_NEAR(x[1], 1.5, 1e-12);
  std::vector<double> singular{1, 1, 1, 1};
  EXPECT_THROW(solve_positive_definite(singular, std::vector<double>{1, 1}), InternalError);
}

}  // namespace
}  // namespace longca::advise
