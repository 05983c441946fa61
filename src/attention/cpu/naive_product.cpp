#include "attention/cpu/naive_product.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/naive_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca {
namespace HWY_NAMESPACE {

constexpr std::int64_t kColumns = 64;  // of c at a time: they stay in registers
constexpr std::int64_t kDepth = 128;   // of b at a time: its panel stays in the first-level cache

/// c[0 … n) += Σ_i a[i · a_stride] · b[i · b_stride + 0 … n), a row at a time, four rows of b
/// together.
inline void add_rows(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                     float* HWY_RESTRICT c, std::int64_t n, std::int64_t k) {
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    const float a0 = a[i * a_stride];
    const float a1 = a[(i + 1) * a_stride];
    const float a2 = a[(i + 2) * a_stride];
    const float a3 = a[(i + 3) * a_stride];
    const float* b0 = b + i * b_stride;
    const float* b1 = b0 + b_stride;
    const float* b2 = b1 + b_stride;
    const float* b3 = b2 + b_stride;
    for (std::int64_t j = 0; j < n; ++j) {
      c[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
    }
  }
  for (; i < k; ++i) {
    const float a0 = a[i * a_stride];
    for (std::int64_t j = 0; j < n; ++j) c[j] += a0 * b[i * b_stride + j];
  }
}

void product(const NaiveMatrix& a, const float* b, std::int64_t b_stride, float* c,
             std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (std::int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const std::int64_t depth = std::min(kDepth, k - k0);
    for (std::int64_t j0 = 0; j0 < n; j0 += kColumns) {
      const float* panel = b + k0 * b_stride + j0;
      const std::int64_t columns = std::min(kColumns, n - j0);
      for (std::int64_t i = 0; i < m; ++i) {
        const float* row = a.data + i * a.row_stride + k0 * a.column_stride;
        float* out = c + i * c_stride + j0;
        if (columns == kColumns) {  // a constant that the compiler unrolls
          add_rows(row, a.column_stride, panel, b_stride, out, kColumns, depth);
        } else {
          add_rows(row, a.column_stride, panel, b_stride, out, columns, depth);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace longca
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca {

HWY_EXPORT(product);

void naive_product(const NaiveMatrix& a, const float* b, std::int64_t b_stride, float* c,
                   std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k) {
  HWY_DYNAMIC_DISPATCH(product)(a, b, b_stride, c, c_stride, m, n, k);
}

}  // namespace longca
#endif
