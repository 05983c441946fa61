#pragma once

#include "attention/kernels/common/mma/backward_keys.cuh"
#include "attention/kernels/flashmask/params.h"
#include "attention/kernels/flashmask/tile_list.cuh"
#include "attention/kernels/flashmask/work_order.cuh"

namespace longca::flashmask {

/// Shared memory of a CTA.
template <typename Shape>
struct BackwardShared : BackwardBuffers<Shape> {
  alignas(16) Column columns[Shape::kTileN];
  TileList list;
};

/// −∞ for the cells that one interval of their column masks; `row` is the tile's first.
template <typename Shape>
__device__ __forceinline__ void mask_scores(typename ScoreWarp<Shape>::Scores& s,
                                            const ScoreWarp<Shape>& warp, int row,
                                            const Column* columns, MaskedRows Column::*interval) {
  warp.mask(s, [&](int key) {
    const MaskedRows rows = columns[key].*interval;
    return [=](int query) { return rows.contain(row + query); };
  });
}

/// dK and dV of kTileN keys of one KV head, summed over the query heads that read it (all of them,
/// or one part of head_parts, whose sums are then added in float32), and what these keys add to dQ.
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

}  // namespace longca::flashmask
