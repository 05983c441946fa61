#include "advise/least_squares.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace longca::advise {
namespace {

constexpr int kReweightings = 4;
constexpr int kSweeps = 200;
constexpr double kSettled = 1e-7;
/// A relative error below this weighs no more than it: what runs of one program differ by.
constexpr double kMinError = 0.01;

/// Rows divided by their values, one after the other, without the terms that no row has.
struct RelativeRows {
  std::vector<std::size_t> used;  ///< which of a row's terms
  std::size_t terms;
  std::vector<double> entries;
  std::vector<double> rest;  ///< of each row, what the terms have to add up to

  std::size_t count() const { return rest.size(); }
  const double* row(std::size_t i) const { return entries.data() + i * terms; }
};

RelativeRows relative_rows(std::span<const FitRow> rows) {
  RelativeRows relative;
  for (std::size_t i = 0; i < rows.front().terms.size(); ++i) {
    const auto has = [i](const FitRow& row) { return row.terms[i] != 0; };
    if (std::ranges::any_of(rows, has)) relative.used.push_back(i);
  }
  relative.terms = relative.used.size();
  relative.entries.reserve(rows.size() * relative.terms);
  for (const FitRow& row : rows) {
    for (const std::size_t i : relative.used) relative.entries.push_back(row.terms[i] / row.value);
    relative.rest.push_back(1 - row.known / row.value);
  }
  return relative;
}

/// The normal equations of the weighted rows, every term scaled to a unit diagonal.
struct NormalEquations {
  std::size_t terms;
  std::vector<double> matrix;
  std::vector<double> right;
  std::vector<double> scale;
};

NormalEquations normal_equations(const RelativeRows& rows, std::span<const double> weights) {
  const std::size_t terms = rows.terms;
  NormalEquations equations{terms, std::vector<double>(terms * terms, 0.0),
                            std::vector<double>(terms, 0.0), std::vector<double>(terms, 0.0)};
  for (std::size_t row = 0; row < rows.count(); ++row) {
    const double* entries = rows.row(row);
    for (std::size_t i = 0; i < terms; ++i) {
      if (entries[i] == 0) continue;
      const double own = weights[row] * entries[i];
      equations.right[i] += own * rows.rest[row];
      for (std::size_t j = 0; j <= i; ++j) equations.matrix[i * terms + j] += own * entries[j];
    }
  }
  for (std::size_t i = 0; i < terms; ++i) {
    const double diagonal = equations.matrix[i * terms + i];
    equations.scale[i] = diagonal > 0 ? 1 / std::sqrt(diagonal) : 0;
  }
  for (std::size_t i = 0; i < terms; ++i) {
    equations.right[i] *= equations.scale[i];
    for (std::size_t j = 0; j <= i; ++j) {
      equations.matrix[i * terms + j] *= equations.scale[i] * equations.scale[j];
      equations.matrix[j * terms + i] = equations.matrix[i * terms + j];
    }
  }
  return equations;
}

/// Coordinate descent, which keeps every coefficient at 0 or above (Franc, Hlaváč, Navara,
/// "Sequential coordinate-wise algorithm for the non-negative least squares problem", 2005).
/// `solution` is where it starts. Most coefficients stay at 0, and cost nothing: the gradient is
/// kept, and changes with those that move.
void descend(const NormalEquations& equations, std::vector<double>& solution) {
  const std::size_t terms = equations.terms;
  std::vector<double> gradient(terms);
  const auto move = [&](std::size_t i, double by) {
    const double* column = equations.matrix.data() + i * terms;  // symmetric
    for (std::size_t j = 0; j < terms; ++j) gradient[j] += by * column[j];
  };
  for (std::size_t i = 0; i < terms; ++i) gradient[i] = -equations.right[i];
  for (std::size_t i = 0; i < terms; ++i) move(i, solution[i]);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double moved = 0;
    for (std::size_t i = 0; i < terms; ++i) {
      if (equations.scale[i] == 0) continue;
      const double next = std::max(0.0, solution[i] - gradient[i]);
      if (next == solution[i]) continue;
      moved = std::max(moved, std::abs(next - solution[i]));
      move(i, next - solution[i]);
      solution[i] = next;
    }
    if (moved < kSettled) return;
  }
}

double relative_error(const double* row, double rest, std::span<const double> coefficients) {
  double predicted = 0;
  for (std::size_t i = 0; i < coefficients.size(); ++i) predicted += coefficients[i] * row[i];
  return predicted - rest;
}

}  // namespace

std::vector<double> fit_non_negative(std::span<const FitRow> rows) {
  if (rows.empty()) return {};
  const RelativeRows relative = relative_rows(rows);
  std::vector<double> weights;
  for (const FitRow& row : rows) weights.push_back(row.weight);
  std::vector<double> coefficients(relative.terms, 0.0);
  for (int round = 0; round < kReweightings; ++round) {
    const NormalEquations equations = normal_equations(relative, weights);
    std::vector<double> scaled(coefficients.size(), 0.0);
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      if (equations.scale[i] > 0) scaled[i] = coefficients[i] / equations.scale[i];
    }
    descend(equations, scaled);
    for (std::size_t i = 0; i < scaled.size(); ++i) {
      coefficients[i] = scaled[i] * equations.scale[i];
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      weights[i] =
          rows[i].weight /
          std::max(std::abs(relative_error(relative.row(i), relative.rest[i], coefficients)),
                   kMinError);
    }
  }
  std::vector<double> all(rows.front().terms.size(), 0.0);
  for (std::size_t i = 0; i < relative.terms; ++i) all[relative.used[i]] = coefficients[i];
  return all;
}

std::vector<double> solve_positive_definite(std::vector<double>& matrix,
                                            std::span<const double> right) {
  const std::size_t n = right.size();
  LONGCA_CHECK(matrix.size() == n * n, "{} entries for {} unknowns", matrix.size(), n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
      if (i == j) LONGCA_CHECK(sum > 0, "pivot {} is {}", i, sum);
      matrix[i * n + j] = i == j ? std::sqrt(sum) : sum / matrix[j * n + j];
    }
  }
  std::vector<double> x(right.begin(), right.end());
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= matrix[i * n + k] * x[k];
    x[i] /= matrix[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) x[i] -= matrix[k * n + i] * x[k];
    x[i] /= matrix[i * n + i];
  }
  return x;
}

}  // namespace longca::advise
