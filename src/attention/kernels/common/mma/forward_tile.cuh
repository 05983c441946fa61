#pragma once

#include <cmath>

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/mma/shared_tile.cuh"

/// The forward pass of one tile of query rows × keys.
namespace longca::mma {

struct RowResult {
  float factor;  ///< 1 / row sum, 0 without keys
  float lse;     ///< natural logarithm; −∞ without keys
};

/// Online softmax (M. Milakov, N. Gimelshein, 2018) of a lane's two rows of a 16-row accumulator,
/// lane / 4 and lane / 4 + 8. Sums are per lane and reduced at the end. Every tile has a sum of its
/// own, because small weights added one by one to the sum of very many keys would be rounded away.
struct RowSoftmax {
  float row_max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  float tile_sum[2] = {0, 0};
  float offset[2];  ///< scale_log2 · row_max

  /// Updates the row max by a tile's raw scores, and rescales `o` and the sums if it grew.
  template <int kScores, int kValues>
  __device__ __forceinline__ void rescale(const float (&s)[kScores][4], float (&o)[kValues][4],
                                          float scale_log2) {
    float factor[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float m = row_max[half];
#pragma unroll
      for (int n = 0; n < kScores; ++n) {
        m = fmaxf(m, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
      }
      m = fmaxf(m, __shfl_xor_sync(~0U, m, 1));
      m = fmaxf(m, __shfl_xor_sync(~0U, m, 2));
      // A row without keys so far subtracts 0: −∞ − −∞ would be NaN.
      offset[half] = m == -INFINITY ? 0 : m * scale_log2;
      // Exactly 1 if the row max did not grow: a fused row_max · scale_log2 − offset would leave
      // the rounding error of offset, and a factor off by a few ulp per tile lets lse drift in long
      // rows.
      factor[half] = row_max[half] == m ? 1 : exp2_fast(row_max[half] * scale_log2 - offset[half]);
      row_max[half] = m;
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

  /// s = exp2(scale_log2 · (s − row_max)) of 8 columns of the tile.
  __device__ __forceinline__ void exponentiate(float (&s)[4], float scale_log2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[i] = exp2_fast(fmaf(s[i], scale_log2, -offset[i / 2]));
      tile_sum[i / 2] += s[i];
    }
  }

  /// Called by the whole warp.
  __device__ __forceinline__ RowResult result(int half, float scale) const {
    float total = sum[half] + tile_sum[half];
    total += __shfl_xor_sync(~0U, total, 1);
    total += __shfl_xor_sync(~0U, total, 2);
    if (total == 0) return {0, -INFINITY};
    return {1 / total, row_max[half] * scale + logf(total)};
  }
};

/// A CTA computes kTileM query rows of one head, kRowTiles · 16 per warp, over key tiles of kTileN.
template <typename Element, int kDim_, int kTileM_, int kTileN_, int kWarps, int kStages_>
struct ForwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr int kTileM = kTileM_;
  static constexpr int kTileN = kTileN_;
  static constexpr int kStages = kStages_;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRowTiles = kTileM / (16 * kWarps);
  /// Two CTAs per SM overlap one's softmax with the other's MMAs.
  static constexpr int kCtasPerSm = kThreads <= 128 ? 2 : 1;

  struct Tiles {
    alignas(1024) T q[kTileM * kDim];
    alignas(1024) T k[kStages][kTileN * kDim];
    alignas(1024) T v[kStages][kTileN * kDim];
  };
};

/// s[row tile] = Q · Kᵀ for this warp's rows.
template <typename Shape>
__device__ __forceinline__ void gemm_qk(float (&s)[Shape::kRowTiles][Shape::kTileN / 8][4],
                                        MatrixAddress<Shape::kDim> q,
                                        MatrixAddress<Shape::kDim> k) {
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
#pragma unroll
    for (int n = 0; n < Shape::kTileN / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[m][n][i] = 0;
    }
  }
#pragma unroll
  for (int step = 0; step < Shape::kDim / 16; ++step) {
    std::uint32_t a[Shape::kRowTiles][4];
#pragma unroll
    for (int m = 0; m < Shape::kRowTiles; ++m) {
      ldmatrix(a[m], q.at(m * 16, step));
    }
#pragma unroll
    for (int n = 0; n < Shape::kTileN / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix(b, k.at(n * 16, step));
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) {
        mma_m16n8k16<typename Shape::T>(s[m][2 * n], a[m], b[0], b[1]);
        mma_m16n8k16<typename Shape::T>(s[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// o[row tile] += P · V with P from the scores s, 16 columns at a time, so that exponentials
/// overlap with MMAs.
template <typename Shape>
__device__ __forceinline__ void gemm_pv(float (&o)[Shape::kRowTiles][Shape::kDim / 8][4],
                                        float (&s)[Shape::kRowTiles][Shape::kTileN / 8][4],
                                        RowSoftmax (&softmax)[Shape::kRowTiles], float scale_log2,
                                        MatrixAddress<Shape::kDim> v) {
#pragma unroll
  for (int step = 0; step < Shape::kTileN / 16; ++step) {
    std::uint32_t a[Shape::kRowTiles][4];
#pragma unroll
    for (int m = 0; m < Shape::kRowTiles; ++m) {
      softmax[m].exponentiate(s[m][2 * step], scale_log2);
      softmax[m].exponentiate(s[m][2 * step + 1], scale_log2);
      pack_operand<typename Shape::T>(a[m], s[m][2 * step], s[m][2 * step + 1]);
    }
#pragma unroll
    for (int n = 0; n < Shape::kDim / 16; ++n) {
      std::uint32_t b[4];
      ldmatrix_trans(b, v.at(step * 16, n));
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) {
        mma_m16n8k16<typename Shape::T>(o[m][2 * n], a[m], b[0], b[1]);
        mma_m16n8k16<typename Shape::T>(o[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

}  // namespace longca::mma
