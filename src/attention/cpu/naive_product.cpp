#include "attention/cpu/naive_product.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/naive_product.cpp"
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

/// sums[r, 0 … 64) += Σ_i a_r[i · stride] · panel[i, 0 … 64) for four rows: eight vectors of sums
/// are what the additions' latency takes to hide.
HWY_INLINE void add_rows(const float* const* a, std::int64_t stride, const float* panel,
                         float* sums, std::int64_t depth) {
  const Tag tag;
  const auto width = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t j = 0; j < kColumns; j += 2 * width) {
    float* c = sums + j;
    auto left0 = hn::Load(tag, c);
    auto left1 = hn::Load(tag, c + kColumns);
    auto left2 = hn::Load(tag, c + 2 * kColumns);
    auto left3 = hn::Load(tag, c + 3 * kColumns);
    auto right0 = hn::Load(tag, c + width);
    auto right1 = hn::Load(tag, c + kColumns + width);
    auto right2 = hn::Load(tag, c + 2 * kColumns + width);
    auto right3 = hn::Load(tag, c + 3 * kColumns + width);
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
    hn::Store(left0, tag, c);
    hn::Store(left1, tag, c + kColumns);
    hn::Store(left2, tag, c + 2 * kColumns);
    hn::Store(left3, tag, c + 3 * kColumns);
    hn::Store(right0, tag, c + width);
    hn::Store(right1, tag, c + kColumns + width);
    hn::Store(right2, tag, c + 2 * kColumns + width);
    hn::Store(right3, tag, c + 3 * kColumns + width);
  }
}

}  // namespace

void product(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
             std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  // A panel of b lies together in the first-level cache, whatever its stride, zero past the edge.
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
        for (std::int64_t r = 0; r < kRows; ++r) {  // past the edge: the last row, into waste
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

HWY_EXPORT(product);

void multiply_add(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
                  std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  HWY_DYNAMIC_DISPATCH(product)(a, b, b_stride, c, c_stride, m, n, k);
}

}  // namespace longca::naive
#endif
