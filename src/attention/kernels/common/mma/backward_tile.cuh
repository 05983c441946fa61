#pragma once

#include <cmath>

#include "attention/kernels/common/mma/fragments.cuh"
#include "attention/kernels/common/mma/instructions.cuh"
#include "attention/kernels/common/mma/shared_tile.cuh"

/// The backward pass of one tile of kTileM queries × kTileN keys. Shared-memory bandwidth is the
/// bottleneck, so every product is divided among the warps in parts as square as possible. Scores
/// are transposed, [keys, queries], so that P and dS in registers are the A operands of dV = Pᵀ dO
/// and dK = dSᵀ Q.
namespace longca::mma {

/// kTileN is 128, or 64 on devices with less shared memory.
template <typename Element, int kDim_, int kTileN_>
struct BackwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr int kTileM = 64;
  static constexpr int kTileN = kTileN_;
  static constexpr int kWarpPairs = kTileN / 32;
  static constexpr int kThreads = kWarpPairs * 64;
  /// dQ [kTileM, kDim] by 2 × kWarpPairs warps, dK and dV [kTileN, kDim] by kWarpPairs × 2.
  using DqFragments = Fragments<kDim, 32, kDim / kWarpPairs, 2, kWarpPairs>;
  using DkFragments = Fragments<kDim, 32, kDim / 2, kWarpPairs, 2>;

  struct Tiles {
    alignas(1024) T k[kTileN * kDim];
    alignas(1024) T v[kTileN * kDim];
    alignas(1024) T q[2][kTileM * kDim];
    alignas(1024) T dout[2][kTileM * kDim];
    alignas(1024) T p[kTileN * kTileM];      ///< [keys, queries]
    alignas(1024) T ds[2][kTileN * kTileM];  ///< [keys, queries], of this tile and the previous
    alignas(16) float row_terms[2][kTileM][2];
  };
};

/// A warp's part of the scores of a tile: 32 keys × 32 of the 64 queries. The other warp of its
/// pair has the same keys and the other queries. Each owns dK and dV of these keys in half of the
/// columns.
template <typename Shape>
class ScoreWarp {
 public:
  using T = typename Shape::T;
  using Operand = SharedTile<Shape::kDim>;
  using ScoreTile = SharedTile<Shape::kTileM>;
  /// [16 keys, 8 queries] accumulators.
  using Scores = float[2][4][4];
  using Sum = float[Shape::DkFragments::kCount][4];

  __device__ __forceinline__ explicit ScoreWarp(int warp)
      : keys_(Shape::DkFragments::row(warp)), half_(warp / Shape::kWarpPairs) {}

  /// x = left · rightᵀ over kDim: [32 keys, 32 queries].
  __device__ __forceinline__ void multiply(Scores& x, Operand left, Operand right) const {
    const MatrixAddress<Shape::kDim> a = left.by_rows(keys_);
    const MatrixAddress<Shape::kDim> b = right.by_columns(half_ * 32);
#pragma unroll
    for (int i = 0; i < 32; ++i) x[i / 16][i / 4 % 4][i % 4] = 0;
#pragma unroll
    for (int step = 0; step < Shape::kDim / 16; ++step) {
      std::uint32_t l[2][4];
      std::uint32_t r[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        ldmatrix(l[i], a.at(i * 16, step));
        ldmatrix(r[i], b.at(i * 16, step));
      }
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          mma_m16n8k16<T>(x[m][n], l[m], r[n / 2][n % 2 * 2], r[n / 2][n % 2 * 2 + 1]);
        }
      }
    }
  }

  /// Sets cells with forbidden(key)(query) to −∞; both are relative to the tile.
  template <typename Forbidden>
  __device__ __forceinline__ void mask(Scores& s, Forbidden forbidden) const {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int high = 0; high < 2; ++high) {
        const auto of_key = forbidden(key(m, high));
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (of_key(query(n))) s[m][n][2 * high] = -INFINITY;
          if (of_key(query(n) + 1)) s[m][n][2 * high + 1] = -INFINITY;
        }
      }
    }
  }

  /// s = P = exp2(scale_log2 · s − lse).
  __device__ __forceinline__ void exponentiate(Scores& s, const float (&terms)[Shape::kTileM][2],
                                               float scale_log2) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float4 pair = terms_of(terms, n);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          s[m][n][i] = exp2_fast(fmaf(s[m][n][i], scale_log2, i % 2 == 0 ? -pair.x : -pair.z));
        }
      }
    }
  }

  /// dp = dS = p · (dp − delta).
  __device__ __forceinline__ void differentiate(Scores& dp, const Scores& p,
                                                const float (&terms)[Shape::kTileM][2]) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float4 pair = terms_of(terms, n);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          dp[m][n][i] = p[m][n][i] * (dp[m][n][i] - (i % 2 == 0 ? pair.y : pair.w));
        }
      }
    }
  }

  /// ds *= 1 − tanh² of a softcap whose capped scores, in the log2 domain, gave p: from p again, as
  /// there are no registers for them.
  __device__ __forceinline__ void apply_slopes(Scores& ds, const Scores& p,
                                               const float (&terms)[Shape::kTileM][2],
                                               float cap_log2) const {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const float4 pair = terms_of(terms, n);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float x = p[m][n][i];
          const float t = (__log2f(x) + (i % 2 == 0 ? pair.x : pair.z)) / cap_log2;
          ds[m][n][i] = x > 0 ? ds[m][n][i] * (1 - t * t) : 0;
        }
      }
    }
  }

  __device__ __forceinline__ void store(const Scores& x, ScoreTile to) const {
    const int byte = static_cast<int>(threadIdx.x % 4) * 4;
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int chunk = half_ * 4 + n;
        store_shared(to.at(key(m, 0), chunk) + byte, pack<T>(x[m][n][0], x[m][n][1]));
        store_shared(to.at(key(m, 1), chunk) + byte, pack<T>(x[m][n][2], x[m][n][3]));
      }
    }
  }

  /// sum += x · right over this warp's queries.
  __device__ __forceinline__ void add_own(Sum& sum, const Scores& x, Operand right) const {
    const MatrixAddress<Shape::kDim> b = columns_of(right, half_);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      std::uint32_t l[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) pack_operand<T>(l[m], x[m][2 * step], x[m][2 * step + 1]);
      add_step(sum, l, b, step);
    }
  }

  /// sum += x · right over the other warp's queries, from the x that it stored.
  __device__ __forceinline__ void add_other(Sum& sum, ScoreTile x, Operand right) const {
    const MatrixAddress<Shape::kDim> b = columns_of(right, 1 - half_);
    const MatrixAddress<Shape::kTileM> a{x.by_rows(keys_).at(0, (1 - half_) * 2)};
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      std::uint32_t l[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) ldmatrix(l[m], a.at(m * 16, step));
      add_step(sum, l, b, step);
    }
  }

  /// Synchronizes the two warps of a pair, which exchange P and dS through shared memory.
  __device__ __forceinline__ void sync_warp_pair() const {
    named_barrier_sync<64>(kWarpPairBarrier + keys_ / 32);
  }

 private:
  /// The lane's key in the low or high 8 rows of 16-key fragment m.
  __device__ __forceinline__ int key(int m, int high) const {
    return keys_ + m * 16 + high * 8 + static_cast<int>(threadIdx.x % 32 / 4);
  }
  /// The first of the lane's two queries in 8-query fragment n.
  __device__ __forceinline__ int query(int n) const {
    return half_ * 32 + n * 8 + static_cast<int>(threadIdx.x % 4) * 2;
  }
  /// lse and delta of the lane's two queries.
  __device__ __forceinline__ float4 terms_of(const float (&terms)[Shape::kTileM][2], int n) const {
    return *reinterpret_cast<const float4*>(terms[query(n)]);
  }
  /// The rows of a half of the queries from the first column of this warp's accumulators on.
  __device__ __forceinline__ MatrixAddress<Shape::kDim> columns_of(Operand right, int half) const {
    return {right.by_rows(half * 32).at(0, half_ * (Shape::kDim / 32))};
  }

  /// sum += left · 16 rows of b.
  static __device__ __forceinline__ void add_step(Sum& sum, const std::uint32_t (&left)[2][4],
                                                  MatrixAddress<Shape::kDim> b, int step) {
    constexpr int kColumns = Shape::DkFragments::kColumns;
#pragma unroll
    for (int n = 0; n < kColumns / 2; ++n) {
      std::uint32_t r[4];
      ldmatrix_trans(r, b.at(step * 16, n));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma_m16n8k16<T>(sum[m * kColumns + 2 * n], left[m], r[0], r[1]);
        mma_m16n8k16<T>(sum[m * kColumns + 2 * n + 1], left[m], r[2], r[3]);
      }
    }
  }

  int keys_;  ///< first key
  int half_;  ///< 0 or 1: half of the queries, and of the columns of dK and dV
};

/// x = this warp's part of dQ = dS · K.
template <typename Shape>
__device__ __forceinline__ void gemm_dq(float (&x)[Shape::DqFragments::kCount][4],
                                        MatrixAddress<Shape::kTileM> ds,
                                        MatrixAddress<Shape::kDim> k) {
  constexpr int kColumns = Shape::DqFragments::kColumns;
#pragma unroll
  for (int i = 0; i < Shape::DqFragments::kCount * 4; ++i) x[i / 4][i % 4] = 0;
#pragma unroll
  for (int step = 0; step < Shape::kTileN / 16; ++step) {
    std::uint32_t left[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) ldmatrix_trans(left[m], ds.at(step * 16, m));
#pragma unroll
    for (int n = 0; n < kColumns / 2; ++n) {
      std::uint32_t right[4];
      ldmatrix_trans(right, k.at(step * 16, n));
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        mma_m16n8k16<typename Shape::T>(x[m * kColumns + 2 * n], left[m], right[0], right[1]);
        mma_m16n8k16<typename Shape::T>(x[m * kColumns + 2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

}  // namespace longca::mma
