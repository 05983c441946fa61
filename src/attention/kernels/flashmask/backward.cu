#include "attention/kernels/common/mma/backward_keys.cuh"
#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/flashmask/launch.h"
#include "attention/kernels/flashmask/work_items.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::flashmask {
namespace {

/// The shared memory of a CTA.
template <typename Shape>
struct BackwardShared : BackwardBuffers<Shape> {
  alignas(16) Column columns[Shape::kTileN];
  TileList list;
};

/// Sets cells in one masked interval of their column to −∞; `row` is the tile's first row.
template <typename Shape>
__device__ __forceinline__ void mask_scores(typename ScoreWarp<Shape>::Scores& s,
                                            const ScoreWarp<Shape>& warp, int row,
                                            const Column* columns, MaskedRows Column::*interval) {
  warp.mask(s, [&](int key) {
    const MaskedRows rows = columns[key].*interval;
    return [=](int query) { return rows.contain(row + query); };
  });
}

/// dK and dV of kTileN keys of one KV head over its query heads, or over one of head_parts parts of
/// them, which are then added in float32; and these keys' contribution to dQ.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) backward_kernel(const BackwardParams params) {
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<BackwardShared<Shape>*>(shared_bytes);

  const TileCounts<Shape> tiles(params);
  const WorkItem work =
      work_item(params.order, tiles.k, params.heads_k * params.head_parts, params.section_heads);
  const int kv_head = work.head / params.head_parts;
  const int heads = params.heads_q / params.heads_k / params.head_parts;
  const int first_head = work.head * heads;
  const int key_begin = work.block * kTileN;
  load_keys(params, shared, kv_head, key_begin);
  if (threadIdx.x < kTileN) {
    shared.columns[threadIdx.x] = params.columns[key_begin + threadIdx.x];
  }
  const BlockBounds bounds = params.bounds[work.block];

  KeySums<Shape> dk = {};
  KeySums<Shape> dv = {};
  const BackwardKeys owned(params, shared, tiles, kv_head, work.block);
  const auto mask = [&](const ScoreWarp<Shape>& warp, auto& s, TileEntry tile) {
    const int row_begin = tile.index * kTileM;
    if (tile.test_lt) mask_scores<Shape>(s, warp, row_begin, shared.columns, &Column::lt);
    if (tile.test_ut) mask_scores<Shape>(s, warp, row_begin, shared.columns, &Column::ut);
  };
  for (int begin = 0; begin < tiles.q; begin += kListCapacity) {
    shared.list.template fill<Shape::kThreads>(begin, tiles.q, [&](int index) {
      return entry_of(index,
                      classify(bounds, index * kTileM, min((index + 1) * kTileM, params.tokens_q)));
    });
    owned.template visit<TileEntry>(shared.list, first_head, heads, dk, dv, mask);
  }
  owned.finish(dk, dv);
}

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  backward_pass<Shape>(params, params, stream, [&] {
    const int key_blocks = ceil_div(params.tokens_k, Shape::kTileN);
    constexpr int kBytes = sizeof(BackwardShared<Shape>);
    LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    backward_kernel<Shape><<<static_cast<unsigned>(key_blocks * params.heads_k * params.head_parts),
                             Shape::kThreads, kBytes, stream>>>(params);
    LONGCA_CUDA(cudaGetLastError());
  });
}

}  // namespace

int backward_tile_n(int shared_bytes) {
  using Large = BackwardShape<__nv_bfloat16, 128, kMaxTileN>;
  return sizeof(BackwardShared<Large>) <= static_cast<std::size_t>(shared_bytes) ? kMaxTileN : 64;
}

int min_backward_shared_bytes() {
  return sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 64>>);
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate<kOtherInstances>(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (params.tile_n == kMaxTileN) {
      launch<BackwardShape<Element, kDim, kMaxTileN>>(params, stream);
    } else {
      launch<BackwardShape<Element, kDim, 64>>(params, stream);
    }
  });
}

}  // namespace longca::flashmask
