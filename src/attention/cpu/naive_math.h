#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca::naive {

/// The key intervals of every (head of the mask, row).
class RowIntervals {
 public:
  explicit RowIntervals(const Mask& mask) : rows_(mask.q_tokens()) {
    offsets_.reserve(static_cast<std::size_t>(mask.heads() * rows_ + 1));
    offsets_.push_back(0);
    for (int head = 0; head < mask.heads(); ++head) {
      for (std::int64_t q = 0; q < rows_; ++q) {
        const std::vector<Range> row = mask.key_intervals(head, q);
        intervals_.insert(intervals_.end(), row.begin(), row.end());
        offsets_.push_back(intervals_.size());
      }
    }
  }

  std::span<const Range> row(int head, std::int64_t q) const {
    const auto i = static_cast<std::size_t>(head * rows_ + q);
    return std::span(intervals_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(intervals_.size() * sizeof(Range) + offsets_.size() * 8);
  }

 private:
  std::int64_t rows_;
  std::vector<std::size_t> offsets_;
  std::vector<Range> intervals_;
};

/// Turns a row of raw products q·k, or capped scores with a scale of 1, into softmax weights, 0
/// where masked; returns the row's lse, −∞ without an allowed key.
float softmax_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale);

/// Turns such a row into softmax weights by a known lse.
void weights_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale,
                 float lse);

/// Turns a row of raw products q·k into scores c · tanh(scale · product / c).
void cap_row(float* row, std::int64_t keys, float scale, float cap);

/// slopes = 1 − tanh² of a row of capped scores.
void cap_slopes(const float* row, std::int64_t keys, float cap, float* slopes);

/// Adds a sink to the softmax of a row, which scales its o down. −∞ is none.
void add_sink(float* o, float& lse, float sink, std::int64_t dim);

/// Merges (o_new, lse_new), a row's result over some keys, into (o, lse), that over other keys.
void merge_row(float* o, float& lse, const float* o_new, float lse_new, std::int64_t dim);

/// A float32 matrix: element (row, column) is data[row · row_stride + column · column_stride].
struct Matrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
};

/// c[m, n] += a[m, k] · b[k, n]; `b` and `c` have contiguous rows, b_stride and c_stride elements
/// apart.
void multiply_add(const Matrix& a, const float* b, std::int64_t b_stride, float* c,
                  std::int64_t c_stride, std::int64_t m, std::int64_t n, std::int64_t k);

}  // namespace longca::naive
