#include "attention/cpu/naive_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longca::naive {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

}  // namespace

float softmax_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale) {
  float maximum = kMinusInfinity;
  for (const Range& range : allowed) {
    for (std::int64_t k = range.begin; k < range.end; ++k) maximum = std::max(maximum, row[k]);
  }
  float sum = 0;
  std::int64_t done = 0;
  for (const Range& range : allowed) {
    std::fill(row + done, row + range.begin, 0.0F);
    for (std::int64_t k = range.begin; k < range.end; ++k) {
      row[k] = std::exp(scale * (row[k] - maximum));
      sum += row[k];
    }
    done = range.end;
  }
  std::fill(row + done, row + keys, 0.0F);
  if (allowed.empty()) return kMinusInfinity;
  for (const Range& range : allowed) {
    for (std::int64_t k = range.begin; k < range.end; ++k) row[k] /= sum;
  }
  return scale * maximum + std::log(sum);
}

void weights_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale,
                 float lse) {
  std::int64_t done = 0;
  for (const Range& range : allowed) {
    std::fill(row + done, row + range.begin, 0.0F);
    for (std::int64_t k = range.begin; k < range.end; ++k) row[k] = std::exp(scale * row[k] - lse);
    done = range.end;
  }
  std::fill(row + done, row + keys, 0.0F);
}

void merge_row(float* o, float& lse, const float* o_new, float lse_new, std::int64_t dim) {
  if (lse_new == kMinusInfinity) return;
  const float maximum = std::max(lse, lse_new);
  const float old_weight = std::exp(lse - maximum);
  const float new_weight = std::exp(lse_new - maximum);
  const float sum = old_weight + new_weight;
  for (std::int64_t c = 0; c < dim; ++c) {
    const float old = old_weight > 0 ? old_weight * o[c] : 0.0F;
    o[c] = (old + new_weight * o_new[c]) / sum;
  }
  lse = maximum + std::log(sum);
}

}  // namespace longca::naive
