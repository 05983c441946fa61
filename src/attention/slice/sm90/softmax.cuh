#pragma once

#include <cstdint>

#include "attention/slice/sm90/ptx/wgmma.cuh"
#include "attention/slice/tile_lists.h"

// The softmax of a thread's part of a 64 × 128 tile of scores: s[4 n + 2 r + i] is the score of row
// lane / 4 + 8 r of the warp's 16 and column 8 n + 2 (lane % 4) + i.
namespace longca::slice::sm90 {

/// Of the two rows: the maximum that probabilities refer to, and the sum of this thread's columns.
struct RowStates {
  float max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
};

/// Bit 2 n + i: do the intervals hold column 8 n + 2 (lane % 4) + i?
__device__ __forceinline__ std::uint32_t column_bits(RowIntervals intervals) {
  const int offset = 2 * static_cast<int>(threadIdx.x & 3);
  const auto from = [offset](std::uint32_t column) {
    const int in_eight = min(max(static_cast<int>(column & 7) - offset, 0), 2);
    return ptx::shift_left(~0u, column / 8 * 2 + static_cast<std::uint32_t>(in_eight));
  };
  return (from(intervals.lo0) & ~from(intervals.hi0)) |
         (from(intervals.lo1) & ~from(intervals.hi1));
}

/// −∞ for the scores of columns that a row's intervals do not hold.
__device__ __forceinline__ void mask_scores(float (&s)[kTileKeys / 2], RowIntervals low,
                                            RowIntervals high) {
  const std::uint32_t low_bits = column_bits(low);
  const std::uint32_t high_bits = column_bits(high);
#pragma unroll
  for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!(low_bits & (1u << (2 * n + i)))) s[4 * n + i] = -INFINITY;
      if (!(high_bits & (1u << (2 * n + i)))) s[4 * n + 2 + i] = -INFINITY;
    }
  }
}

/// Scores to probabilities. An old maximum serves until a score of the warp exceeds it by 2⁸ after
/// scaling, so that sums are seldom rescaled. True if a maximum grew: what was summed before is
/// then to be multiplied by factor[row], and rows.sum has been. kMasked: a row may still have seen
/// nothing.
template <bool kMasked>
__device__ __forceinline__ bool exponentiate(float (&s)[kTileKeys / 2], RowStates& rows,
                                             float scale_log2, float (&factor)[2]) {
  constexpr float kSlack = 8;
  float tile_max[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most = fmaxf(s[2 * r], s[2 * r + 1]);
#pragma unroll
    for (int n = 1; n < kTileKeys / 8; ++n) {
      most = fmaxf(most, fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
    }
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    tile_max[r] = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  }
  const auto base = [&](int r) {
    return kMasked && rows.max[r] == -INFINITY ? 0.0f : rows.max[r] * scale_log2;
  };
  // From −∞ any score is growth; −∞ − −∞ is not.
  const bool grows = __any_sync(~0u, (tile_max[0] - rows.max[0]) * scale_log2 > kSlack ||
                                         (tile_max[1] - rows.max[1]) * scale_log2 > kSlack);
  if (grows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = rows.max[r];
      rows.max[r] = fmaxf(before, tile_max[r]);
      factor[r] = ptx::exp2(before * scale_log2 - base(r));
      rows.sum[r] *= factor[r];
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float offset = base(r);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& x = s[4 * n + 2 * r + i];
        x = ptx::exp2(fmaf(x, scale_log2, -offset));
        sum += x;
      }
    }
    rows.sum[r] += sum;
  }
  return grows;
}

/// The same layout for sums of 64 × kDim: each row times its factor.
template <int kCount>
__device__ __forceinline__ void scale_output(float (&o)[kCount], const float (&factor)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) o[i] *= factor[i / 2 % 2];
}

/// The row's whole sum from those of the four threads that share it.
__device__ __forceinline__ float row_sum(float sum) {
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum + __shfl_xor_sync(~0u, sum, 2);
}

}  // namespace longca::slice::sm90
