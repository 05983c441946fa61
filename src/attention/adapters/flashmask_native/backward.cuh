#pragma once

#include "attention/adapters/flashmask_native/fragments.cuh"
#include "attention/adapters/flashmask_native/mma.cuh"
#include "attention/adapters/flashmask_native/params.h"
#include "attention/adapters/flashmask_native/shared_tile.cuh"
#include "attention/adapters/flashmask_native/softmax.cuh"
#include "attention/adapters/flashmask_native/tile_list.cuh"
#include "attention/adapters/flashmask_native/work_order.cuh"

namespace longca::flashmask {

/// A work group computes dK and dV of kTileN keys of one KV head, 16 per warp, visiting blocks of
/// kTileM queries of the query heads that read it (all of them, or one part of head_parts, whose
/// sums are then added in float32).
/// Scores are computed transposed, [keys, queries]: then P and dS of a warp's keys are, as they lie
/// in registers, the left operands of dV = Pᵀ dO and dK = dSᵀ Q; only dQ = dS K, which sums over
/// keys, goes through shared memory.
template <typename Element, int kDim_>
struct BackwardShape {
  using T = Element;
  static constexpr int kDim = kDim_;
  static constexpr int kTileM = 64;
  static constexpr int kTileN = 128;
  static constexpr int kStages = 2;
  static constexpr int kWarps = 8;
  static constexpr int kThreads = kWarps * 32;
  /// dQ [kTileM, kDim] is computed by 2 × 4 warps, dK and dV by 8 × 1.
  using DqFragments = Fragments<kDim, 32, kDim / 4, 2, 4>;
  using DkFragments = Fragments<kDim, 16, kDim, 8, 1>;

  struct Shared {
    alignas(1024) T k[kTileN * kDim];
    alignas(1024) T v[kTileN * kDim];
    alignas(1024) T q[kStages][kTileM * kDim];
    alignas(1024) T dout[kStages][kTileM * kDim];
    alignas(1024) T ds[2][kTileN * kTileM];  ///< [keys, queries], of this tile and the one before
    alignas(16) float row_terms[kStages][kTileM][2];
    TileList list;
  };
};

/// x = a · bᵀ: 16 rows of `a`, kTileM rows of `b`, over kDim.
template <typename Shape>
__device__ __forceinline__ void multiply_transposed(float (&x)[Shape::kTileM / 8][4],
                                                    MatrixAddress<Shape::kDim> a,
                                                    MatrixAddress<Shape::kDim> b) {
#pragma unroll
  for (int n = 0; n < Shape::kTileM / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[n][i] = 0;
  }
#pragma unroll
  for (int step = 0; step < Shape::kDim / 16; ++step) {
    std::uint32_t left[4];
    ldmatrix(left, a.at(0, step));
#pragma unroll
    for (int n = 0; n < Shape::kTileM / 16; ++n) {
      std::uint32_t right[4];
      ldmatrix(right, b.at(n * 16, step));
      mma<typename Shape::T>(x[2 * n], left, right[0], right[1]);
      mma<typename Shape::T>(x[2 * n + 1], left, right[2], right[3]);
    }
  }
}

/// sum += x · b: x [16, kTileM] from registers, b [kTileM, kDim].
template <typename Shape>
__device__ __forceinline__ void add_product(float (&sum)[Shape::kDim / 8][4],
                                            const float (&x)[Shape::kTileM / 8][4],
                                            MatrixAddress<Shape::kDim> b) {
#pragma unroll
  for (int step = 0; step < Shape::kTileM / 16; ++step) {
    std::uint32_t left[4];
    pack_operand<typename Shape::T>(left, x[2 * step], x[2 * step + 1]);
#pragma unroll
    for (int n = 0; n < Shape::kDim / 16; ++n) {
      std::uint32_t right[4];
      ldmatrix_trans(right, b.at(step * 16, n));
      mma<typename Shape::T>(sum[2 * n], left, right[0], right[1]);
      mma<typename Shape::T>(sum[2 * n + 1], left, right[2], right[3]);
    }
  }
}

/// x = dS · K for the part of dQ that this warp owns.
template <typename Shape>
__device__ __forceinline__ void multiply_dq(float (&x)[Shape::DqFragments::kCount][4],
                                            MatrixAddress<Shape::kTileM> ds,
                                            MatrixAddress<Shape::kDim> k) {
  constexpr int kColumns = Shape::DqFragments::kColumns;
#pragma unroll
  for (int f = 0; f < Shape::DqFragments::kCount; ++f) {
#pragma unroll
    for (int i = 0; i < 4; ++i) x[f][i] = 0;
  }
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
        mma<typename Shape::T>(x[m * kColumns + 2 * n], left[m], right[0], right[1]);
        mma<typename Shape::T>(x[m * kColumns + 2 * n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

/// s = exp2(scale_log2 · s − lse).
template <typename Shape>
__device__ __forceinline__ void probabilities(float (&s)[Shape::kTileM / 8][4],
                                              const float (&row_terms)[Shape::kTileM][2],
                                              float scale_log2) {
#pragma unroll
  for (int n = 0; n < Shape::kTileM / 8; ++n) {
    const float4 terms = *reinterpret_cast<const float4*>(row_terms[n * 8 + (threadIdx.x % 4) * 2]);
    s[n][0] = exp2_fast(fmaf(s[n][0], scale_log2, -terms.x));
    s[n][1] = exp2_fast(fmaf(s[n][1], scale_log2, -terms.z));
    s[n][2] = exp2_fast(fmaf(s[n][2], scale_log2, -terms.x));
    s[n][3] = exp2_fast(fmaf(s[n][3], scale_log2, -terms.z));
  }
}

/// 0 where the lane's two keys mask their rows; `row` is the tile's first.
template <typename Shape>
__device__ __forceinline__ void mask_probabilities(float (&p)[Shape::kTileM / 8][4], int row,
                                                   MaskedRows low, MaskedRows high) {
  const int first = row + (threadIdx.x % 4) * 2;
#pragma unroll
  for (int n = 0; n < Shape::kTileM / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (low.contain(first + n * 8 + i)) p[n][i] = 0;
      if (high.contain(first + n * 8 + i)) p[n][i + 2] = 0;
    }
  }
}

/// dp = p · (dp − delta), also written to `ds` as T.
template <typename Shape>
__device__ __forceinline__ void score_gradients(float (&dp)[Shape::kTileM / 8][4],
                                                const float (&p)[Shape::kTileM / 8][4],
                                                const float (&row_terms)[Shape::kTileM][2],
                                                SharedTile<Shape::kTileM> ds, int key_row) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < Shape::kTileM / 8; ++n) {
    const float4 terms = *reinterpret_cast<const float4*>(row_terms[n * 8 + (lane % 4) * 2]);
    dp[n][0] = p[n][0] * (dp[n][0] - terms.y);
    dp[n][1] = p[n][1] * (dp[n][1] - terms.w);
    dp[n][2] = p[n][2] * (dp[n][2] - terms.y);
    dp[n][3] = p[n][3] * (dp[n][3] - terms.w);
    const std::uint32_t low = ds.at(key_row + lane / 4, n) + (lane % 4) * 4;
    const std::uint32_t high = ds.at(key_row + lane / 4 + 8, n) + (lane % 4) * 4;
    store_shared(low, pack<typename Shape::T>(dp[n][0], dp[n][1]));
    store_shared(high, pack<typename Shape::T>(dp[n][2], dp[n][3]));
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) backward_kernel(const BackwardParams params) {
  using T = typename Shape::T;
  constexpr int kDim = Shape::kDim;
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  constexpr std::uint32_t kTileBytes = sizeof(Shape::Shared::q[0]);
  constexpr std::uint32_t kDsBytes = sizeof(Shape::Shared::ds[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);

  const int row_blocks = (params.tokens_q + kTileM - 1) / kTileM;
  const int key_blocks = (params.tokens_k + kTileN - 1) / kTileN;
  const WorkItem work =
      work_item(params.order, key_blocks, params.heads_k * params.head_parts, params.section_heads);
  const int kv_head = work.head / params.head_parts;
  const int heads = params.heads_q / params.heads_k / params.head_parts;
  const int first_head = work.head * heads;
  const int key_begin = work.block * kTileN;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp_key = warp * 16;

  const SharedTile<kDim> k_tile{shared_address(shared.k)};
  const SharedTile<kDim> v_tile{shared_address(shared.v)};
  const SharedTile<kDim> q_tile{shared_address(shared.q)};
  const SharedTile<kDim> dout_tile{shared_address(shared.dout)};
  const SharedTile<kTileM> ds_tile{shared_address(shared.ds)};
  k_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.k, kv_head, params.tokens_k), key_begin);
  v_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.v, kv_head, params.tokens_k), key_begin);
  const Column low = params.columns[key_begin + warp_key + lane / 4];
  const Column high = params.columns[key_begin + warp_key + lane / 4 + 8];
  const BlockBounds bounds = params.bounds[work.block];

  float dk[kDim / 8][4] = {};
  float dv[kDim / 8][4] = {};
  const float scale_log2 = params.scale * kLog2E;
  for (int begin = 0; begin < row_blocks; begin += kListCapacity) {
    shared.list.template fill<Shape::kThreads>(begin, row_blocks, [&](int index) {
      return classify(bounds, index * kTileM, min((index + 1) * kTileM, params.tokens_q));
    });
    const int count = shared.list.count;
    const int items = count * heads;  // the tiles of every query head
    const auto head_of = [&](int i) { return first_head + i / count; };
    const auto load = [&](int i) {
      const int head = head_of(i);
      const int row_begin = shared.list[i % count].index * kTileM;
      const std::uint32_t stage = i % 2;
      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      q_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.q, head, params.tokens_q), row_begin);
      dout_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.dout, head, params.tokens_q), row_begin);
      if (threadIdx.x < kTileM / 2) {
        const std::int64_t row =
            static_cast<std::int64_t>(head) * row_blocks * kTileM + row_begin + threadIdx.x * 2;
        cp_async(shared_address(shared.row_terms[stage][threadIdx.x * 2]),
                 params.row_terms + row * 2);
      }
    };
    // dQ of item i, whose dS is in shared memory: this warp's queries and columns.
    using Dq = typename Shape::DqFragments;
    const MatrixAddress<kTileM> dq_left{ds_tile.by_columns().at(0, Dq::row(warp) / 16)};
    const MatrixAddress<kDim> dq_right{k_tile.by_rows().at(0, Dq::column(warp) / 16)};
    const auto add_dq = [&](int i) {
      float dq[Dq::kCount][4];
      multiply_dq<Shape>(dq, dq_left + i % 2 * kDsBytes, dq_right);
      Dq::add(params.dq_sum, head_of(i) * row_blocks + shared.list[i % count].index, dq);
    };

    if (items > 0) load(0);
    cp_async_commit();
    for (int i = 0; i < items; ++i) {
      cp_async_wait<0>();
      __syncthreads();  // item i has arrived; dS of i − 1 is written, everything of i − 2 is read
      if (i + 1 < items) load(i + 1);
      cp_async_commit();
      if (i > 0) add_dq(i - 1);

      const std::uint32_t stage = i % 2;
      const ListedTile tile = shared.list[i % count];
      float p[kTileM / 8][4];
      multiply_transposed<Shape>(p, k_tile.by_rows(warp_key),
                                 q_tile.by_columns() + stage * kTileBytes);
      probabilities<Shape>(p, shared.row_terms[stage], scale_log2);
      const int row_begin = tile.index * kTileM;
      if (tile.test_lt) mask_probabilities<Shape>(p, row_begin, low.lt, high.lt);
      if (tile.test_ut) mask_probabilities<Shape>(p, row_begin, low.ut, high.ut);
      float ds[kTileM / 8][4];
      multiply_transposed<Shape>(ds, v_tile.by_rows(warp_key),
                                 dout_tile.by_columns() + stage * kTileBytes);
      add_product<Shape>(dv, p, dout_tile.by_rows() + stage * kTileBytes);
      score_gradients<Shape>(ds, p, shared.row_terms[stage], {ds_tile.base + stage * kDsBytes},
                             warp_key);
      add_product<Shape>(dk, ds, q_tile.by_rows() + stage * kTileBytes);
    }
    __syncthreads();
    if (items > 0) add_dq(items - 1);
    __syncthreads();  // the list and the stages are written next
  }
  cp_async_wait<0>();
  __syncthreads();  // k and v have arrived, though no tile was visited

  if (params.head_parts > 1) {
    Shape::DkFragments::add(params.dk_sum, kv_head * key_blocks + work.block, dk);
    Shape::DkFragments::add(params.dv_sum, kv_head * key_blocks + work.block, dv);
    return;
  }
  store_rows<T, kDim>(dk, params.scale, params.scale, k_tile, warp_key,
                      head_rows<T>(params.dk, kv_head, params.tokens_k), key_begin + warp_key);
  store_rows<T, kDim>(dv, 1, 1, v_tile, warp_key, head_rows<T>(params.dv, kv_head, params.tokens_k),
                      key_begin + warp_key);
}

}  // namespace longca::flashmask
