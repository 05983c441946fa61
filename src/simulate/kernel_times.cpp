#include "simulate/kernel_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace longca::simulate {
namespace {

constexpr std::size_t kTerms = 3;  // cells, rows, calls
using Terms = std::array<double, kTerms>;
constexpr double kMinWeight = 1e-6;  ///< of a call that takes quite another time
constexpr double kMinWork = 0.1;     ///< of a call's time is spent on cells

double flops_of_cell(const TimedCall& call, cost::Pass pass) {
  const cost::HeadShape shape{
      .heads_q = call.heads, .heads_k = call.heads, .head_dim = call.head_dim};
  return cost::flops_per_cell(shape, pass);
}

/// What each of the three figures contributes to a call, relative to the call's time.
Terms terms_of(const TimedCall& call, cost::Pass pass) {
  const double flops = flops_of_cell(call, pass);
  return {flops * call.area / call.seconds, flops * call.rows / call.seconds, 1 / call.seconds};
}

/// Solves the normal equations of the terms in `used` by elimination with pivots; the others are 0.
Terms solve(const std::array<Terms, kTerms>& products, const Terms& sums, unsigned used) {
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < kTerms; ++i) {
    if ((used >> i & 1U) != 0) which.push_back(i);
  }
  const std::size_t n = which.size();
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) rows[i][j] = products[which[i]][which[j]];
    rows[i][n] = sums[which[i]];
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i || rows[i][i] == 0) continue;
      const double factor = rows[j][i] / rows[i][i];
      for (std::size_t k = i; k <= n; ++k) rows[j][k] -= factor * rows[i][k];
    }
  }
  Terms solution{};
  for (std::size_t i = 0; i < n; ++i) solution[which[i]] = rows[i][n] / rows[i][i];
  return solution;
}

double squared_error(const Terms& solution, std::span<const Terms> calls) {
  double error = 0;
  for (const Terms& call : calls) {
    double sum = -1;
    for (std::size_t i = 0; i < kTerms; ++i) sum += solution[i] * call[i];
    error += sum * sum;
  }
  return error;
}

}  // namespace

double CallRate::seconds(double area, double rows, int heads, int head_dim, cost::Pass pass) const {
  if (area <= 0) return 0;
  const cost::HeadShape shape{.heads_q = heads, .heads_k = heads, .head_dim = head_dim};
  return cost::CallCost{cost::flops_per_cell(shape, pass) / flops_per_second, keys_per_row,
                        seconds_per_call}
      .seconds(area + keys_per_row * rows);
}

KernelTimes slice_times(const cost::Platform& platform) {
  const cost::ForwardRates& forward = platform.kernel.forward;
  const cost::BackwardRates& backward = platform.kernel.backward;
  return {
      {forward.tile_flops_per_second, forward.keys_per_row, forward.seconds_per_call},
      {backward.tile_flops_per_second, backward.keys_per_row, backward.seconds_per_call},
  };
}

CallRate fit_rate(std::span<const TimedCall> calls, cost::Pass pass) {
  std::vector<Terms> terms;
  for (const TimedCall& call : calls) terms.push_back(terms_of(call, pass));
  // Scaled to about 1, so that elimination is well-conditioned.
  Terms scale{};
  for (const Terms& call : terms) {
    for (std::size_t i = 0; i < kTerms; ++i) scale[i] = std::max(scale[i], call[i]);
  }
  std::array<Terms, kTerms> products{};
  Terms sums{};
  for (Terms& call : terms) {
    for (std::size_t i = 0; i < kTerms; ++i) call[i] /= scale[i];
    for (std::size_t i = 0; i < kTerms; ++i) {
      sums[i] += call[i];
      for (std::size_t j = 0; j < kTerms; ++j) products[i][j] += call[i] * call[j];
    }
  }
  Terms best{};
  double min_error = std::numeric_limits<double>::infinity();
  for (unsigned used = 1; used < 1U << kTerms; used += 2) {  // always the cells
    const Terms solution = solve(products, sums, used);
    const bool possible =
        solution[0] > 0 && std::ranges::all_of(solution, [](double x) { return x >= 0; });
    if (!possible) continue;
    const double error = squared_error(solution, terms);
    if (error >= min_error) continue;
    min_error = error;
    best = solution;
  }
  if (best[0] == 0) return {};
  for (std::size_t i = 0; i < kTerms; ++i) best[i] /= scale[i];
  return {1 / best[0], best[1] / best[0], best[2]};
}

CallRate scaled_to(CallRate rate, std::span<const TimedCall> calls, cost::Pass pass,
                   double seconds) {
  if (calls.empty() || rate.flops_per_second == 0) return rate;
  double sum = 0;
  double weights = 0;
  for (const TimedCall& call : calls) {
    const double distance = seconds > 0 ? std::log2(call.seconds / seconds) : 0;
    const double weight = std::max(std::exp(-0.5 * distance * distance), kMinWeight);
    const double fixed = rate.seconds_per_call;
    const double work = rate.seconds(call.area, call.rows, call.heads, call.head_dim, pass) - fixed;
    sum += weight * std::log(std::max(call.seconds - fixed, kMinWork * call.seconds) / work);
    weights += weight;
  }
  rate.flops_per_second /= std::exp(sum / weights);
  return rate;
}

}  // namespace longca::simulate
