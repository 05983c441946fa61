#pragma once

#include "attention/adapters/flashmask_native/mma.cuh"
#include "attention/adapters/flashmask_native/params.h"
#include "attention/adapters/flashmask_native/shared_tile.cuh"
#include "attention/adapters/flashmask_native/softmax.cuh"
#include "attention/adapters/flashmask_native/tile_list.cuh"
#include "attention/adapters/flashmask_native/work_order.cuh"

namespace longca::flashmask {

/// A work group computes kTileM query rows of one head, kRowTiles · 16 per warp, visiting key
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
  /// Two groups per multiprocessor hide each other's softmax behind products.
  static constexpr int kGroupsPerSm = kThreads <= 128 ? 2 : 1;

  struct Shared {
    alignas(1024) T q[kTileM * kDim];
    alignas(1024) T k[kStages][kTileN * kDim];
    alignas(1024) T v[kStages][kTileN * kDim];
    alignas(16) Column columns[kStages][kTileN];
    TileList list;
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
        mma<typename Shape::T>(s[m][2 * n], a[m], b[0], b[1]);
        mma<typename Shape::T>(s[m][2 * n + 1], a[m], b[2], b[3]);
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
        mma<typename Shape::T>(o[m][2 * n], a[m], b[0], b[1]);
        mma<typename Shape::T>(o[m][2 * n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// −∞ for the cells of a 16-row tile that one interval of their column masks; `row` is the first.
template <typename Shape>
__device__ __forceinline__ void mask_scores(float (&s)[Shape::kTileN / 8][4], int row,
                                            const Column* columns, MaskedRows Column::*interval) {
  const int lane = threadIdx.x & 31;
  const int low = row + lane / 4;
#pragma unroll
  for (int n = 0; n < Shape::kTileN / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const MaskedRows rows = columns[n * 8 + (lane % 4) * 2 + i].*interval;
      if (rows.contain(low)) s[n][i] = -INFINITY;
      if (rows.contain(low + 8)) s[n][i + 2] = -INFINITY;
    }
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kGroupsPerSm)
    forward_kernel(const ForwardParams params) {
  using T = typename Shape::T;
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  constexpr int kStages = Shape::kStages;
  constexpr std::uint32_t kTileBytes = sizeof(Shape::Shared::k[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);

  const int row_blocks = (params.tokens_q + kTileM - 1) / kTileM;
  const int key_blocks = (params.tokens_k + kTileN - 1) / kTileN;
  const WorkItem work = work_item(params.order, row_blocks, params.heads_q, params.section_heads);
  const int row_begin = work.block * kTileM;
  const int row_end = min(row_begin + kTileM, params.tokens_q);
  const int warp_row = static_cast<int>(threadIdx.x / 32) * (kTileM / (Shape::kThreads / 32));

  const auto q = head_rows<const T>(params.q, work.head, params.tokens_q);
  const int kv_head = work.head / (params.heads_q / params.heads_k);
  const auto k = head_rows<const T>(params.k, kv_head, params.tokens_k);
  const auto v = head_rows<const T>(params.v, kv_head, params.tokens_k);
  const SharedTile<Shape::kDim> q_tile{shared_address(shared.q)};
  q_tile.template load<kTileM, Shape::kThreads>(q, row_begin);
  const SharedTile<Shape::kDim> k_tile{shared_address(shared.k)};
  const SharedTile<Shape::kDim> v_tile{shared_address(shared.v)};
  const auto q_matrices = q_tile.by_rows(warp_row);
  const auto k_matrices = k_tile.by_columns();
  const auto v_matrices = v_tile.by_rows();

  const auto load = [&](int i) {
    const ListedTile tile = shared.list[i];
    const int stage = i % kStages;
    const SharedTile<Shape::kDim> k_stage{k_tile.base + stage * kTileBytes};
    const SharedTile<Shape::kDim> v_stage{v_tile.base + stage * kTileBytes};
    k_stage.template load<kTileN, Shape::kThreads>(k, tile.index * kTileN);
    v_stage.template load<kTileN, Shape::kThreads>(v, tile.index * kTileN);
    if ((tile.test_lt || tile.test_ut) && threadIdx.x < kTileN) {
      cp_async(shared_address(&shared.columns[stage][threadIdx.x]),
               params.columns + tile.index * kTileN + threadIdx.x);
    }
  };

  float o[Shape::kRowTiles][Shape::kDim / 8][4] = {};
  RowSoftmax softmax[Shape::kRowTiles];
  const float scale_log2 = params.scale * kLog2E;
  for (int begin = 0; begin < key_blocks; begin += kListCapacity) {
    shared.list.template fill<Shape::kThreads>(begin, key_blocks, [&](int index) {
      return classify(params.bounds[index], row_begin, row_end);
    });
    const int count = shared.list.count;
#pragma unroll
    for (int i = 0; i < kStages - 1; ++i) {
      if (i < count) load(i);
      cp_async_commit();
    }
    for (int i = 0; i < count; ++i) {
      cp_async_wait<kStages - 2>();
      __syncthreads();
      if (i + kStages - 1 < count) load(i + kStages - 1);
      cp_async_commit();

      const int stage = i % kStages;
      float s[Shape::kRowTiles][kTileN / 8][4];
      multiply_scores<Shape>(s, q_matrices, k_matrices + stage * kTileBytes);
      const auto mask = [&](MaskedRows Column::*interval) {
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          const int row = row_begin + warp_row + m * 16;
          mask_scores<Shape>(s[m], row, shared.columns[stage], interval);
        }
      };
      const ListedTile tile = shared.list[i];
      if (tile.test_lt) mask(&Column::lt);
      if (tile.test_ut) mask(&Column::ut);
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) softmax[m].begin(s[m], o[m], scale_log2);
      multiply_values<Shape>(o, s, softmax, scale_log2, v_matrices + stage * kTileBytes);
    }
    __syncthreads();  // the list and the stages are written next
  }
  cp_async_wait_all();
  __syncthreads();  // q has arrived, though no tile was visited

  const auto out = head_rows<T>(params.o, work.head, params.tokens_q);
  float* lse = params.lse + work.head * params.lse_head_stride;
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
    const RowResult low = softmax[m].result(0, params.scale);
    const RowResult high = softmax[m].result(1, params.scale);
    const int row = row_begin + warp_row + m * 16;
    store_rows<T, Shape::kDim>(o[m], low.factor, high.factor, q_tile, warp_row + m * 16, out, row);
    const int lane = threadIdx.x & 31;
    if (lane % 4 == 0) {
      if (row + lane / 4 < params.tokens_q) lse[row + lane / 4] = low.lse;
      if (row + lane / 4 + 8 < params.tokens_q) lse[row + lane / 4 + 8] = high.lse;
    }
  }
}

}  // namespace longca::flashmask
