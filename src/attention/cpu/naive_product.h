#pragma once

#include <cstdint>

namespace longca {

/// A float32 matrix whose elements (row, column) lie at data[row · row_stride + column ·
/// column_stride].
struct NaiveMatrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// c[m, n] += a[m, k] · b[k, n]. `b` and `c` have contiguous rows, `b_stride` and `c_stride`
/// elements apart. Plain loops, compiled for each instruction set of the machine's family.
void naive_product(const NaiveMatrix& a, const float* b, std::int64_t b_stride, float* c,
                   std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace longca
