#pragma once

#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/mma/shared_tile.cuh"
#include "attention/kernels/common/mma/softmax.cuh"

/// What the forward pass computes of one tile of query rows × keys.
namespace longca::mma {

/// A CTA computes kTileM query rows of one head, kRowTiles · 16 per warp, visiting key
/// blocks of kTileN.
template <typename Element, int kDim_, int kTileM_, int kTileN_, int kWarps, int kStages_>
struct ForwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr int kTileM = kTileM_;
  static constexpr int kTileN = kTileN_;
  static constexpr int kStages = kStages_;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kRowTiles = kTileM / (16 * kWarps);
  /// Two groups per SM hide each other's softmax behind products.
  static constexpr int kGroupsPerSm = kThreads <= 128 ? 2 : 1;

  struct Tiles {
    alignas(1024) T q[kTileM * kDim];
    alignas(1024) T k[kStages][kTileN * kDim];
    alignas(1024) T v[kStages][kTileN * kDim];
  };
};

/// s[row tile] = q · kᵀ for this warp's rows.
template <typename Shape>
__device__ __forceinline__ void multiply_scores(float (&s)[Shape::kRowTiles][Shape::kTileN / 8][4],
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
        multiply_add<typename Shape::T>(s[m][2 * n], a[m], b[0], b[1]);
        multiply_add<typename Shape::T>(s[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// o[row tile] += p · v with the probabilities p of the scores s. They are computed 16 columns at a
/// time, so that exponentials and products are under way together.
template <typename Shape>
__device__ __forceinline__ void multiply_values(float (&o)[Shape::kRowTiles][Shape::kDim / 8][4],
                                                float (&s)[Shape::kRowTiles][Shape::kTileN / 8][4],
                                                RowSoftmax (&softmax)[Shape::kRowTiles],
                                                float scale_log2, MatrixAddress<Shape::kDim> v) {
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
        multiply_add<typename Shape::T>(o[m][2 * n], a[m], b[0], b[1]);
        multiply_add<typename Shape::T>(o[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

}  // namespace longca::mma
