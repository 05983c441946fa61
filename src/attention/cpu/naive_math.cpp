#include "attention/cpu/naive_math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/naive_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca::naive {
namespace HWY_NAMESPACE {

namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kColumns = 64;
constexpr std::int64_t kDepth = 64;
using Tag = hn::CappedTag<float, 16>;

constexpr std::int64_t kRows = 4;

/// sums[r, 0 … 64) += Σ_i a_r[i · stride] · panel[i, 0 … 64) for four rows; eight vectors of sums
/// hide the latency of the additions. The sum over the panel begins at 0, since the error of a
/// chain of additions grows with its length.
HWY_INLINE void add_rows(const float* const* a, std::int64_t stride, const float* panel,
                         float* sums, std::int64_t depth) {
  const Tag tag;
  const auto width = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t j = 0; j < kColumns; j += 2 * width) {
    float* c = sums + j;
    auto left0 = hn::Zero(tag);
    auto left1 = hn::Zero(tag);
    auto left2 = hn::Zero(tag);
    auto left3 = hn::Zero(tag);
    auto right0 = hn::Zero(tag);
    auto right1 = hn::Zero(tag);
    auto right2 = hn::Zero(tag);
    auto right3 = hn::Zero(tag);
    for (std::int64_t i = 0; i < depth; ++i) {
      const auto left = hn::Load(tag, panel + i * kColumns + j);
      const auto right = hn::Load(tag, panel + i * kColumns + j + width);
      left0 = hn::MulAdd(hn::Set(tag, a[0][i * stride]), left, left0);
      right0 = hn::MulAdd(hn::Set(tag, a[0][i * stride]), right, right0);
      left1 = hn::MulAdd(hn::Set(tag, a[1][i * stride]), left, left1);
      right1 = hn::MulAdd(hn::Set(tag, a[1][i * stride]), right, right1);
      left2 = hn::MulAdd(hn::Set(tag, a[2][i * stride]), left, left2);
      right2 = hn::MulAdd(hn::Set(tag, a[2][i * stride]), right, right2);
      left3 = hn::MulAdd(hn::Set(tag, a[3][i * stride]), left, left3);
      right3 = hn::MulAdd(hn::Set(tag, a[3][i * stride]), right, right3);
    }
    hn::Store(hn::Add(hn::Load(tag, c), left0), tag, c);
    hn::Store(hn::Add(hn::Load(tag, c + kColumns), left1), tag, c + kColumns);
    hn::Store(hn::Add(hn::Load(tag, c + 2 * kColumns), left2), tag, c + 2 * kColumns);
    hn::Store(hn::Add(hn::Load(tag, c + 3 * kColumns), left3), tag, c + 3 * kColumns);
    hn::Store(hn::Add(hn::Load(tag, c + width), right0), tag, c + width);
    hn::Store(hn::Add(hn::Load(tag, c + kColumns + width), right1), tag, c + kColumns + width);
    hn::Store(hn::Add(hn::Load(tag, c + 2 * kColumns + width), right2), tag,
              c + 2 * kColumns + width);
    hn::Store(hn::Add(hn::Load(tag, c + 3 * kColumns + width), right3), tag,
              c + 3 * kColumns + width);
  }
}

}  // namespace

void product(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
             std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  // A dense copy of a panel of b, zero-padded, which stays in the L1 cache.
  alignas(64) float panel[kDepth * kColumns];
  alignas(64) float sums[kRows * kColumns] = {};
  for (std::int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - k0);
    for (std::int64_t j0 = 0; j0 < n; j0 += kColumns) {
      const std::int64_t columns = std::min(kColumns, n - j0);
      std::fill_n(panel, kDepth * kColumns, 0.0F);
      for (std::int64_t i = 0; i < depth; ++i) {
        std::copy_n(b + (k0 + i) * b_stride + j0, columns, panel + i * kColumns);
      }
      for (std::int64_t i = 0; i < m; i += kRows) {
        const std::int64_t rows = std::min(kRows, m - i);
        const float* a_rows[kRows];
        for (std::int64_t r = 0; r < kRows; ++r) {  // repeats the last row; its sums are unused
          a_rows[r] = a.data + (i + std::min(r, rows - 1)) * a.row_stride + k0 * a.column_stride;
        }
        float* out = c + i * c_stride + j0;
        for (std::int64_t r = 0; r < rows; ++r) {
          std::copy_n(out + r * c_stride, columns, sums + r * kColumns);
        }
        add_rows(a_rows, a.column_stride, panel, sums, depth);
        for (std::int64_t r = 0; r < rows; ++r) {
          std::copy_n(sums + r * kColumns, columns, out + r * c_stride);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace longca::naive
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca::naive {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

}  // namespace

float softmax_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale) {
  float maximum = kMinusInfinity;
  for (const Range& range : allowed) {
    for (std::int64_t k = range.begin; k < range.end; ++k) maximum = std::max(maximum, row[k]);
  }
  double sum = 0;  // in float32 equal terms would be rounded alike, and their errors add up
  std::int64_t done = 0;
  for (const Range& range : allowed) {
    std::fill(row + done, row + range.begin, 0.0F);
    for (std::int64_t k = range.begin; k < range.end; ++k) {
      row[k] = std::exp(scale * (row[k] - maximum));
      sum += static_cast<double>(row[k]);
    }
    done = range.end;
  }
  std::fill(row + done, row + keys, 0.0F);
  if (allowed.empty()) return kMinusInfinity;
  const auto rounded = static_cast<float>(sum);
  for (const Range& range : allowed) {
    for (std::int64_t k = range.begin; k < range.end; ++k) row[k] /= rounded;
  }
  return scale * maximum + std::log(rounded);
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

void cap_row(float* row, std::int64_t keys, float scale, float cap) {
  for (std::int64_t k = 0; k < keys; ++k) row[k] = cap * std::tanh(scale * row[k] / cap);
}

void cap_slopes(const float* row, std::int64_t keys, float cap, float* slopes) {
  for (std::int64_t k = 0; k < keys; ++k) {
    const float t = row[k] / cap;
    slopes[k] = (1.0F - t) * (1.0F + t);
  }
}

void add_sink(float* o, float& lse, float sink, std::int64_t dim) {
  if (sink == kMinusInfinity) return;
  const float maximum = std::max(lse, sink);
  const float weight = std::exp(lse - maximum);
  const float sum = weight + std::exp(sink - maximum);
  for (std::int64_t c = 0; c < dim; ++c) o[c] *= weight / sum;
  lse = maximum + std::log(sum);
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

HWY_EXPORT(product);

void multiply_add(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
                  std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  HWY_DYNAMIC_DISPATCH(product)(a, b, b_stride, c, c_stride, m, n, k);
}

}  // namespace longca::naive
#endif
