#include "attention/reference/float64_samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace longca {
namespace {

/// Four partial sums hide the latency of additions.
double float64_dot(const float* a, const float* b, int dim) {
  std::array<double, 4> sums{};
  int c = 0;
  for (; c + 4 <= dim; c += 4) {
    for (int i = 0; i < 4; ++i) sums[i] += double{a[c + i]} * double{b[c + i]};
  }
  double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; c < dim; ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

void add_scaled(double factor, const float* x, std::vector<double>& sum) {
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += factor * double{x[c]};
}

const float* row_of(std::span<const float> values, std::int64_t row, int dim) {
  return values.data() + row * dim;
}

double capped(double score, double softcap) {
  return softcap > 0 ? softcap * std::tanh(score / softcap) : score;
}

/// Derivative of a capped score by the score.
double slope_of(double score, double softcap) {
  if (softcap == 0) return 1;
  const double t = score / softcap;
  return (1 - t) * (1 + t);
}

/// √Σ ‖term‖² of a gradient of scores, as TileTerms::magnitude: dP and delta are sums of products
/// dO · v themselves, with errors of the products' size also where they are near 0 by chance.
class GradientMagnitude {
 public:
  /// A cell of weight scale · P, whose row of the sum is ‖x‖².
  void add(double weight, double dp, double delta, double x_squared, double expected_dp_squared) {
    const double found = std::abs(dp) + std::abs(delta);
    found_ += weight * weight * found * found * x_squared;
    expected_ += weight * weight * expected_dp_squared * x_squared;
  }
  double value() const { return std::sqrt(std::max(found_, 0.64 * expected_)); }

 private:
  double found_ = 0, expected_ = 0;
};

template <typename Visit>
void for_tokens(std::span<const Range> ranges, const Visit& visit) {
  for (const Range& range : ranges) {
    for (std::int64_t token = range.begin; token < range.end; ++token) visit(token);
  }
}

}  // namespace

std::vector<double> exact_scores(std::span<const float> q, std::span<const float> k, int dim,
                                 double scale, double softcap, std::span<const Range> keys) {
  std::vector<double> scores;
  for_tokens(keys, [&](std::int64_t key) {
    scores.push_back(capped(scale * float64_dot(q.data(), row_of(k, key, dim), dim), softcap));
  });
  return scores;
}

ExactRow exact_row(const HeadValues& head, std::int64_t row, std::span<const Range> keys) {
  const int dim = head.dim;
  const int value_dim = head.value_dim;
  const float* q = row_of(head.q, row, dim);
  const float* dout = row_of(head.dout, row, value_dim);
  ExactRow out;
  out.o.resize(static_cast<std::size_t>(value_dim));
  out.dq.resize(static_cast<std::size_t>(dim));
  const std::vector<double> scores =
      exact_scores({q, static_cast<std::size_t>(dim)}, head.k, dim, head.scale, head.softcap, keys);
  double largest = head.sink ? double{*head.sink} : -std::numeric_limits<double>::infinity();
  for (const double score : scores) largest = std::max(largest, score);
  out.lse = largest;
  if (scores.empty()) return out;
  double sum = head.sink ? std::exp(double{*head.sink} - largest) : 0;
  for (const double score : scores) sum += std::exp(score - largest);
  out.lse += std::log(sum);
  std::size_t i = 0;
  for_tokens(keys, [&](std::int64_t k) {
    const float* v = row_of(head.v, k, value_dim);
    const double p = std::exp(scores[i++] - out.lse);
    add_scaled(p, v, out.o);
    out.o_magnitude += p * p * float64_dot(v, v, value_dim);
  });
  for (int c = 0; c < value_dim; ++c) {
    out.delta += double{dout[c]} * out.o[static_cast<std::size_t>(c)];
  }
  i = 0;
  const double dout_squared = float64_dot(dout, dout, value_dim);
  GradientMagnitude magnitude;
  for_tokens(keys, [&](std::int64_t k) {
    const float* key = row_of(head.k, k, dim);
    const float* v = row_of(head.v, k, value_dim);
    const double score = scores[i++];
    const double weight = head.scale * std::exp(score - out.lse);
    const double dp = float64_dot(dout, v, value_dim);
    add_scaled(weight * slope_of(score, head.softcap) * (dp - out.delta), key, out.dq);
    magnitude.add(weight, dp, out.delta, float64_dot(key, key, dim),
                  dout_squared * float64_dot(v, v, value_dim) / value_dim);
  });
  out.o_magnitude = std::sqrt(out.o_magnitude);
  out.dq_magnitude = magnitude.value();
  return out;
}

ExactKey exact_key(const HeadValues& head, std::int64_t key, std::span<const Range> queries,
                   const RowLookup& rows) {
  const int dim = head.dim;
  const int value_dim = head.value_dim;
  const float* k = row_of(head.k, key, dim);
  const float* v = row_of(head.v, key, value_dim);
  ExactKey out;
  out.dk.resize(static_cast<std::size_t>(dim));
  out.dv.resize(static_cast<std::size_t>(value_dim));
  const double v_squared = float64_dot(v, v, value_dim);
  GradientMagnitude magnitude;
  for_tokens(queries, [&](std::int64_t row) {
    const float* q = row_of(head.q, row, dim);
    const float* dout = row_of(head.dout, row, value_dim);
    const double delta = rows.delta(row);
    const double score = capped(head.scale * float64_dot(q, k, dim), head.softcap);
    const double p = std::exp(score - rows.lse(row));
    const double dp = float64_dot(dout, v, value_dim);
    add_scaled(p, dout, out.dv);
    add_scaled(head.scale * p * slope_of(score, head.softcap) * (dp - delta), q, out.dk);
    const double dout_squared = float64_dot(dout, dout, value_dim);
    out.dv_magnitude += p * p * dout_squared;
    magnitude.add(head.scale * p, dp, delta, float64_dot(q, q, dim),
                  v_squared * dout_squared / value_dim);
  });
  out.dk_magnitude = magnitude.value();
  out.dv_magnitude = std::sqrt(out.dv_magnitude);
  return out;
}

void add(const ExactKey& part, ExactKey& sum) {
  if (sum.dk.empty()) {
    sum = part;
    return;
  }
  for (std::size_t c = 0; c < sum.dk.size(); ++c) sum.dk[c] += part.dk[c];
  for (std::size_t c = 0; c < sum.dv.size(); ++c) sum.dv[c] += part.dv[c];
  sum.dk_magnitude = std::hypot(sum.dk_magnitude, part.dk_magnitude);
  sum.dv_magnitude = std::hypot(sum.dv_magnitude, part.dv_magnitude);
}

}  // namespace longca
