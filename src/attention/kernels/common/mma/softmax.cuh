#pragma once

#include <cmath>

#include "attention/kernels/common/mma/instructions.cuh"

namespace longca::mma {

inline constexpr float kLog2E = 1.4426950408889634F;

struct RowResult {
  float factor;  ///< what the accumulated values of the row are multiplied by
  float lse;     ///< natural logarithm of the row's sum; −∞ without keys
};

/// Online softmax (M. Milakov, N. Gimelshein, 2018) of the two rows that a lane has in a 16-row
/// accumulator: lane / 4 and lane / 4 + 8. The sum is kept per lane and joined at the end. A tile's
/// weights are summed apart: beside the sum of very many keys small ones would round to nothing,
/// one by one.
struct RowSoftmax {
  float greatest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  float tile_sum[2] = {0, 0};
  float offset[2];  ///< scale_log2 · greatest

  /// Takes in the raw scores of a tile: what is in `o` is scaled if the greatest grew.
  template <int kScores, int kValues>
  __device__ __forceinline__ void begin(const float (&s)[kScores][4], float (&o)[kValues][4],
                                        float scale_log2) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float m = greatest[half];
#pragma unroll
      for (int n = 0; n < kScores; ++n) {
        m = fmaxf(m, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      }
      m = fmaxf(m, __shfl_xor_sync(~0U, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0U, m, 2));
      // A row that has seen no key yet subtracts 0, or −∞ − −∞ would be NaN.
      offset[half] = m == -INFINITY ? 0 : m * scale_log2;
      // Exactly 1 where the greatest stayed: a fused greatest · scale_log2 − offset keeps the
      // rounding of offset, and a factor a few ulp off, once per tile, is a drift of lse over long
      // rows.
      factor[half] =
          greatest[half] == m ? 1 : exp2_fast(greatest[half] * scale_log2 - offset[half]);
      greatest[half] = m;
      sum[half] += tile_sum[half];
      tile_sum[half] = 0;
    }
    if (__all_sync(~0U, factor[0] == 1 && factor[1] == 1)) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) sum[half] *= factor[half];
#pragma unroll
    for (int n = 0; n < kValues; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] *= factor[i / 2];
    }
  }

  /// s = exp2(scale_log2 · (s − greatest)) of 8 columns of the tile.
  __device__ __forceinline__ void exponentiate(float (&s)[4], float scale_log2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[i] = exp2_fast(fmaf(s[i], scale_log2, -offset[i / 2]));
      tile_sum[i / 2] += s[i];
    }
  }

  /// Called by whole warps.
  __device__ __forceinline__ RowResult result(int half, float scale) const {
    float total = sum[half] + tile_sum[half];
    total += __shfl_xor_sync(~0U, total, 1);
    total += __shfl_xor_sync(~0U, total, 2);
    if (total == 0) return {0, -INFINITY};
    return {1 / total, greatest[half] * scale + logf(total)};
  }
};

}  // namespace longca::mma
