#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca::naive {

/// The key intervals of every row of a mask, per head of the mask.
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

/// Turns a row of raw products q·k into softmax weights, 0 where not allowed; returns the row's
/// log-sum-exp, −∞ without an allowed key.
float softmax_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale);

/// Turns a row of raw products q·k into the weights that belong to a known log-sum-exp.
void weights_row(float* row, std::int64_t keys, std::span<const Range> allowed, float scale,
                 float lse);

/// Merges a row's result over these keys into (o, lse), its result over other keys.
void merge_row(float* o, float& lse, const float* o_new, float lse_new, std::int64_t dim);

}  // namespace longca::naive
