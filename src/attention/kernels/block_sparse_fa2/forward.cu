#include "attention/kernels/block_sparse_fa2/launch.h"
#include "attention/kernels/common/mma/forward_tile.cuh"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/common/mma/tile_list.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::fa2_sparse {
namespace {

/// A CTA computes kTileM query rows: kRows tokens of kHeads query heads that share a list. All rows
/// of a warp are of one head.
template <typename Element, int kDim, int kRows_, int kHeads_>
struct SparseForwardShape : ForwardShape<Element, kDim, kRows_ * kHeads_, 64, 4, 2> {
  using Base = ForwardShape<Element, kDim, kRows_ * kHeads_, 64, 4, 2>;
  static constexpr int kRows = kRows_;
  static constexpr int kHeads = kHeads_;
  static constexpr int kWarpRows = Base::kRowTiles * 16;
  static_assert(kRows % kWarpRows == 0);

  struct Shared : Base::Tiles {
    TileList list;
  };
};

/// Sets cells of 16 rows × kTileN keys from (row, key) on outside the band to −∞.
template <typename Shape>
__device__ __forceinline__ void mask_scores(float (&s)[Shape::kTileN / 8][4], int row, int key,
                                            const Band& band) {
  const int lane = threadIdx.x & 31;
  const int low = row + lane / 4;
#pragma unroll
  for (int n = 0; n < Shape::kTileN / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int k = key + n * 8 + (lane % 4) * 2 + i;
      if (!band.allows(low, k)) s[n][i] = -INFINITY;
      if (!band.allows(low + 8, k)) s[n][i + 2] = -INFINITY;
    }
  }
}

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kCtasPerSm)
    forward_kernel(const ForwardParams params) {
  using T = typename Shape::T;
  constexpr int kRows = Shape::kRows;
  constexpr int kTileN = Shape::kTileN;
  constexpr int kStages = Shape::kStages;
  constexpr std::uint32_t kTileBytes = sizeof(Shape::Tiles::k[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);

  const int row_tiles = ceil_div(params.tokens_q, kRows);
  const int key_tiles = ceil_div(params.tokens_k, kTileN);
  const int work = params.order[blockIdx.x];
  const int first_head = work / row_tiles * Shape::kHeads;
  const int row_begin = work % row_tiles * kRows;
  const Tokens rows{row_begin, min(row_begin + kRows, params.tokens_q)};
  const int warp_row = static_cast<int>(threadIdx.x / 32) * Shape::kWarpRows;

  const int kv_head = first_head / (params.heads_q / params.heads_k);
  const auto k = head_rows<const T>(params.k, kv_head, params.tokens_k);
  const auto v = head_rows<const T>(params.v, kv_head, params.tokens_k);
  const SharedTile<Shape::kDim> q_tile{shared_address(shared.q)};
#pragma unroll
  for (int h = 0; h < Shape::kHeads; ++h) {
    const SharedTile<Shape::kDim> part{q_tile.base +
                                       h * kRows * SharedTile<Shape::kDim>::kRowBytes};
    part.template load<kRows, Shape::kThreads>(
        head_rows<const T>(params.q, first_head + h, params.tokens_q), row_begin);
  }
  const SharedTile<Shape::kDim> k_tile{shared_address(shared.k)};
  const SharedTile<Shape::kDim> v_tile{shared_address(shared.v)};
  const auto q_matrices = q_tile.by_rows(warp_row);
  const auto k_matrices = k_tile.by_columns();
  const auto v_matrices = v_tile.by_rows();
  const auto load = [&](int i) {
    const int key_begin = TileEntry::of(shared.list.entries[i]).index * kTileN;
    const SharedTile<Shape::kDim> k_stage{k_tile.base + i % kStages * kTileBytes};
    const SharedTile<Shape::kDim> v_stage{v_tile.base + i % kStages * kTileBytes};
    k_stage.template load<kTileN, Shape::kThreads>(k, key_begin);
    v_stage.template load<kTileN, Shape::kThreads>(v, key_begin);
  };

  float o[Shape::kRowTiles][Shape::kDim / 8][4] = {};
  RowSoftmax softmax[Shape::kRowTiles];
  const float scale_log2 = params.scale * kLog2E;
  const int first_row = row_begin + warp_row % kRows;
  const std::uint32_t* kept = params.row_of(first_head, params.heads_q, row_begin / params.q_block);
  const int tiles_per_block = params.k_block / kTileN;
  for (int begin = 0; begin < key_tiles; begin += kListCapacity) {
    shared.list.template fill<Shape::kThreads>(begin, key_tiles, [&](int index) {
      const Tokens keys{index * kTileN, (index + 1) * kTileN};
      if (!has_bit(kept, index / tiles_per_block)) return -1;
      return entry_of(index, params.band, rows, keys);
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
      const TileEntry tile = TileEntry::of(shared.list.entries[i]);
      if (tile.test) {
#pragma unroll
        for (int m = 0; m < Shape::kRowTiles; ++m) {
          mask_scores<Shape>(s[m], first_row + m * 16, tile.index * kTileN, params.band);
        }
      }
#pragma unroll
      for (int m = 0; m < Shape::kRowTiles; ++m) softmax[m].rescale(s[m], o[m], scale_log2);
      gemm_pv<Shape>(o, s, softmax, scale_log2, v_matrices + stage * kTileBytes);
    }
    __syncthreads();  // before the list and the stages are overwritten
  }
  cp_async_wait_all();
  __syncthreads();  // Q is loaded, even if no tile was visited

  const int head = first_head + warp_row / kRows;
  const auto out = head_rows<T>(params.o, head, params.tokens_q);
  float* lse = params.lse + head * params.lse_head_stride;
#pragma unroll
  for (int m = 0; m < Shape::kRowTiles; ++m) {
    const RowResult low = softmax[m].result(0, params.scale);
    const RowResult high = softmax[m].result(1, params.scale);
    const int row = first_row + m * 16;
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
  const int row_tiles = ceil_div(params.tokens_q, Shape::kRows);
  if (row_tiles == 0) return;
  constexpr int kBytes = sizeof(typename Shape::Shared);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  forward_kernel<Shape><<<static_cast<unsigned>(row_tiles * (params.heads_q / Shape::kHeads)),
                          Shape::kThreads, kBytes, stream>>>(params);
  LONGCA_CUDA(cudaGetLastError());
}

/// The three tile shapes: tokens per list row × heads.
template <typename Element, int kDim>
using LongBlocks = SparseForwardShape<Element, kDim, 128, 1>;
template <typename Element, int kDim>
using PairedHeads = SparseForwardShape<Element, kDim, 64, 2>;
template <typename Element, int kDim>
using ShortBlocks = SparseForwardShape<Element, kDim, 64, 1>;

}  // namespace

int forward_shared_bytes() {
  return sizeof(LongBlocks<__nv_bfloat16, 128>::Shared);
}

void launch_forward(const ForwardParams& params, ForwardTile tile, DType dtype, int head_dim,
                    cudaStream_t stream) {
  instantiate<kOtherInstances>(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (tile.tokens == 128) {
      launch<LongBlocks<Element, kDim>>(params, stream);
    } else if (tile.heads == 2) {
      launch<PairedHeads<Element, kDim>>(params, stream);
    } else {
      launch<ShortBlocks<Element, kDim>>(params, stream);
    }
  });
}

}  // namespace longca::fa2_sparse
