#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace longca::simulate {

namespace detail {

/// Solves the normal equations of the terms in `used` by elimination with pivots; the others are 0.
template <std::size_t n>
std::array<double, n> solve(const std::array<std::array<double, n>, n>& products,
                            const std::array<double, n>& sums, unsigned used) {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < n; ++i) {
    if ((used >> i & 1U) != 0) which.push_back(i);
  }
  const std::size_t count = which.size();
  std::vector<std::vector<double>> rows(count, std::vector<double>(count + 1));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) rows[i][j] = products[which[i]][which[j]];
    rows[i][count] = sums[which[i]];
  }
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (j == i || rows[i][i] == 0) continue;
      const double factor = rows[j][i] / rows[i][i];
      for (std::size_t k = i; k <= count; ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  std::array<double, n> solution{};
  for (std::size_t i = 0; i < count; ++i) solution[which[i]] = rows[i][count] / rows[i][i];
  return solution;
}

template <std::size_t n>
double squared_error(const std::array<double, n>& solution,
                     std::span<const std::array<double, n>> measured) {
  double error = 0;
  for (const auto& terms : measured) {
    double sum = -1;
    for (std::size_t i = 0; i < n; ++i) sum += solution[i] * terms[i];
    error += sum * sum;
  }
  return error;
}

}  // namespace detail

/// Figures x ≥ 0 whose sums Σ xᵢ · termᵢ come nearest to the measured times: least squares of
/// relative errors. `measured`: of each time what the figures contribute, divided by the time. The
/// first figure is above 0; all are 0 where no such choice exists.
template <std::size_t n>
std::array<double, n> fit_relative(std::vector<std::array<double, n>> measured) {
  using Terms = std::array<double, n>;
  // Scaled to about 1, so that elimination is well-conditioned.
  Terms scale{};
  for (const Terms& terms : measured) {
    for (std::size_t i = 0; i < n; ++i) scale[i] = std::max(scale[i], terms[i]);
  }
  for (double& x : scale) {
    if (x == 0) x = 1;  // a figure that no time depends on: no subset with it has a solution
  }
  std::array<Terms, n> products{};
  Terms sums{};
  for (Terms& terms : measured) {
    for (std::size_t i = 0; i < n; ++i) terms[i] /= scale[i];
    for (std::size_t i = 0; i < n; ++i) {
      sums[i] += terms[i];
      for (std::size_t j = 0; j < n; ++j) products[i][j] += terms[i] * terms[j];
    }
  }
  Terms best{};
  double min_error = std::numeric_limits<double>::infinity();
  for (unsigned used = 1; used < 1U << n; used += 2) {  // always the first
    const Terms solution = detail::solve(products, sums, used);
    const bool possible =
        solution[0] > 0 && std::ranges::all_of(solution, [](double x) { return x >= 0; });
    if (!possible) continue;
    const double error = detail::squared_error<n>(solution, measured);
    if (error >= min_error) continue;
    min_error = error;
    best = solution;
  }
  if (best[0] > 0) {
    for (std::size_t i = 0; i < n; ++i) best[i] /= scale[i];
  }
  return best;
}

}  // namespace longca::simulate
