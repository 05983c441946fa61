#pragma once

#include <cstdint>

namespace longca::naive {

/// A float32 matrix: element (row, column) lies at data[row · row_stride + column · column_stride].
struct Matrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// c[m, n] += a[m, k] · b[k, n]. `b` and `c` have contiguous rows, `b_stride` and `c_stride`
/// elements apart. Four rows of `a` at a time against a panel of `b` that fits the first-level
/// cache.
void multiply_add(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
                  std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace longca::naive
