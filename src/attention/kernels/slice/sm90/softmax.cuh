#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"
#include "attention/kernels/slice/planner/tile_lists.h"

// The softmax of a thread's part of a 64 × kKeys tile of scores: s[4 n + 2 r + i] is the score of
// row lane / 4 + 8 r of the warp's 16 and column 8 n + 2 (lane % 4) + i. Exponents are of 2: scores
// times scale_log2.
namespace longca::slice::sm90 {

/// Of the two rows: the exponent that probabilities refer to, and the sum of this thread's columns.
struct RowStates {
  float reference[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};

  /// What to subtract from exponents: of a row that has seen no key, nothing.
  __device__ float offset(int r) const { return reference[r] == -INFINITY ? 0 : reference[r]; }
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
template <int kKeys>
__device__ __forceinline__ void mask_scores(float (&s)[kTileKeys / 2], RowIntervals low,
                                            RowIntervals high) {
  const std::uint32_t low_bits = column_bits(low);
  const std::uint32_t high_bits = column_bits(high);
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (!(low_bits & (1u << (2 * n + i)))) s[4 * n + i] = -INFINITY;
      if (!(high_bits & (1u << (2 * n + i)))) s[4 * n + 2 + i] = -INFINITY;
    }
  }
}

/// The greatest of row r in the tile.
template <int kKeys>
__device__ __forceinline__ float row_max(const float (&s)[kTileKeys / 2], int r) {
  float most = fmaxf(s[2 * r], s[2 * r + 1]);
#pragma unroll
  for (int n = 1; n < kKeys / 8; ++n) {
    most = fmaxf(most, fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
  }
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  return fmaxf(most, __shfl_xor_sync(~0u, most, 2));
}

/// Scores to probabilities, where a row may have seen nothing yet. An old reference serves until a
/// score of the warp exceeds it by 2⁸, so that sums are seldom rescaled. True if a reference grew:
/// what was summed before is then to be multiplied by factor[row], and rows.sum has been.
template <int kKeys>
__device__ __forceinline__ bool exponentiate(float (&s)[kTileKeys / 2], RowStates& rows,
                                             float scale_log2, float (&factor)[2]) {
  constexpr float kSlack = 8;
  const float most[2] = {row_max<kKeys>(s, 0) * scale_log2, row_max<kKeys>(s, 1) * scale_log2};
  // From −∞ any score is growth; −∞ − −∞ is not.
  const bool grows =
      __any_sync(~0u, most[0] - rows.reference[0] > kSlack || most[1] - rows.reference[1] > kSlack);
  if (grows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = rows.reference[r];
      rows.reference[r] = fmaxf(before, most[r]);
      factor[r] = ptx::exp2(before - rows.offset(r));
      rows.sum[r] *= factor[r];
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float offset = rows.offset(r);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
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

/// Scores to exponents, from which the references are subtracted.
__device__ __forceinline__ void refer_scores(float (&s)[kTileKeys / 2], const RowStates& rows,
                                             float scale_log2) {
  const float offset[2] = {rows.offset(0), rows.offset(1)};
#pragma unroll
  for (int i = 0; i < kTileKeys / 2; ++i) s[i] = fmaf(s[i], scale_log2, -offset[i / 2 % 2]);
}

/// Exponents to probabilities as an operand, and to their sums per row.
template <typename Element>
__device__ __forceinline__ void raise_exponents(const float (&s)[kTileKeys / 2],
                                                std::uint32_t (&p)[kTileKeys / 4],
                                                float (&sum)[2]) {
  sum[0] = sum[1] = 0;
#pragma unroll
  for (int i = 0; i < kTileKeys / 4; ++i) {
    const float low = ptx::exp2(s[2 * i]);
    const float high = ptx::exp2(s[2 * i + 1]);
    sum[i % 2] += low;
    sum[i % 2] += high;
    p[i] = ptx::pack<Element>(low, high);
  }
}

/// The same for a tile of which every row sees every key, from what refer_scores left. That no
/// score is far above its reference shows in the sums, and needs no maximum, a fifth of all
/// instructions; if one is, the references move there.
template <typename Element>
__device__ __forceinline__ bool exponentiate_seen(float (&s)[kTileKeys / 2],
                                                  std::uint32_t (&p)[kTileKeys / 4],
                                                  RowStates& rows, float (&factor)[2]) {
  constexpr float kMost = 1024;  // far from the end of float16
  float sum[2];
  raise_exponents<Element>(s, p, sum);
  const auto exceeds = [&](int r) { return !(sum[r] <= kMost) || rows.reference[r] == -INFINITY; };
  const bool grows = __any_sync(~0u, exceeds(0) || exceeds(1));
  if (grows) {
    float step[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float before = rows.reference[r];
      step[r] = row_max<kTileKeys>(s, r);
      if (before != -INFINITY) step[r] = fmaxf(step[r], 0);
      factor[r] = before == -INFINITY ? 0 : ptx::exp2(-step[r]);
      rows.reference[r] = rows.offset(r) + step[r];
      rows.sum[r] *= factor[r];
    }
#pragma unroll
    for (int i = 0; i < kTileKeys / 2; ++i) s[i] -= step[i / 2 % 2];
    raise_exponents<Element>(s, p, sum);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) rows.sum[r] += sum[r];
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
