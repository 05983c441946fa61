#include "attention/kernels/common/mma/forward_tile.cuh"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/flashmask/launch.h"
#include "attention/kernels/flashmask/work_items.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::flashmask {
namespace {

/// The shared memory of a CTA.
template <typename Shape>
struct ForwardShared : Shape::Tiles {
  alignas(16) Column columns[Shape::kStages][Shape::kTileN];
  TileList list;
};

/// Sets cells of 16 rows from `row` on in one masked interval of their column to −∞.
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
__global__ void __launch_bounds__(Shape::kThreads, Shape::kCtasPerSm)
    forward_kernel(const ForwardParams params) {
  using T = typename Shape::T;
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  constexpr int kStages = Shape::kStages;
  constexpr std::uint32_t kTileBytes = sizeof(Shape::Tiles::k[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<ForwardShared<Shape>*>(shared_bytes);

  const int row_blocks = ceil_div(params.tokens_q, kTileM);
  const int key_blocks = ceil_div(params.tokens_k, kTileN);
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
    const TileEntry tile = TileEntry::of(shared.list.entries[i]);
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
      return entry_of(index, classify(params.bounds[index], row_begin, row_end));
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
      gemm_qk<Shape>(s, q_matrices, k_matrices + stage * kTileBytes);
      const auto mask = [&](MaskedRows Column::*interval) {
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          const int row = row_begin + warp_row + m * 16;
          mask_scores<Shape>(s[m], row, shared.columns[stage], interval);
        }
      };
      const TileEntry tile = TileEntry::of(shared.list.entries[i]);
      if (tile.test_lt) mask(&Column::lt);
      if (tile.test_ut) mask(&Column::ut);
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) softmax[m].rescale(s[m], o[m], scale_log2);
      gemm_pv<Shape>(o, s, softmax, scale_log2, v_matrices + stage * kTileBytes);
    }
    __syncthreads();  // before the list and the stages are overwritten
  }
  cp_async_wait_all();
  __syncthreads();  // Q is loaded, even if no tile was visited

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

template <typename Shape>
void launch(const ForwardParams& params, cudaStream_t stream) {
  const int row_blocks = ceil_div(params.tokens_q, Shape::kTileM);
  if (row_blocks == 0) return;
  constexpr int kBytes = sizeof(ForwardShared<Shape>);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  forward_kernel<Shape>
      <<<static_cast<unsigned>(row_blocks * params.heads_q), Shape::kThreads, kBytes, stream>>>(
          params);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

int min_forward_shared_bytes() {
  return sizeof(
      ForwardShared<ForwardShape<__nv_bfloat16, 128, kForwardTileM, kForwardTileN, 4, 2>>);
}

void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate<kOtherInstances>(dtype, head_dim, [&]<typename Element, int kDim>() {
    launch<ForwardShape<Element, kDim, kForwardTileM, kForwardTileN, 4, 2>>(params, stream);
  });
}

}  // namespace longca::flashmask
