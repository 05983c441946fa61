#pragma once

#include "attention/adapters/flashmask_native/params.h"
#include "attention/adapters/flashmask_native/tile_list.cuh"
#include "attention/adapters/flashmask_native/work_order.cuh"
#include "attention/cuda/mma/backward_tile.cuh"
#include "attention/cuda/mma/softmax.cuh"

namespace longca::flashmask {

/// What a work group keeps in shared memory besides tiles.
template <typename Shape>
struct BackwardShared : Shape::Tiles {
  alignas(128) float dq[Shape::kTileM * Shape::kDim];  ///< on its way to the sums
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
  using T = typename Shape::T;
  using Dq = typename Shape::DqFragments;
  using Dk = typename Shape::DkFragments;
  constexpr int kDim = Shape::kDim;
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  constexpr std::uint32_t kTileBytes = sizeof(Shape::Tiles::q[0]);
  constexpr std::uint32_t kDsBytes = sizeof(Shape::Tiles::ds[0]);
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<BackwardShared<Shape>*>(shared_bytes);

  const int row_blocks = (params.tokens_q + kTileM - 1) / kTileM;
  const int key_blocks = (params.tokens_k + kTileN - 1) / kTileN;
  const WorkItem work =
      work_item(params.order, key_blocks, params.heads_k * params.head_parts, params.section_heads);
  const int kv_head = work.head / params.head_parts;
  const int heads = params.heads_q / params.heads_k / params.head_parts;
  const int first_head = work.head * heads;
  const int key_begin = work.block * kTileN;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const ScoreWarp<Shape> scores(warp);

  const SharedTile<kDim> k_tile{shared_address(shared.k)};
  const SharedTile<kDim> v_tile{shared_address(shared.v)};
  const SharedTile<kDim> q_tile{shared_address(shared.q)};
  const SharedTile<kDim> dout_tile{shared_address(shared.dout)};
  const SharedTile<kTileM> p_tile{shared_address(shared.p)};
  const SharedTile<kTileM> ds_tile{shared_address(shared.ds)};
  k_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.k, kv_head, params.tokens_k), key_begin);
  v_tile.template load<kTileN, Shape::kThreads>(
      head_rows<const T>(params.v, kv_head, params.tokens_k), key_begin);
  if (threadIdx.x < kTileN) {
    shared.columns[threadIdx.x] = params.columns[key_begin + threadIdx.x];
  }
  const BlockBounds bounds = params.bounds[work.block];

  float dk[Dk::kCount][4] = {};
  float dv[Dk::kCount][4] = {};
  const float scale_log2 = params.scale * kLog2E;
  for (int begin = 0; begin < row_blocks; begin += kListCapacity) {
    shared.list.template fill<Shape::kThreads>(begin, row_blocks, [&](int index) {
      return entry_of(index,
                      classify(bounds, index * kTileM, min((index + 1) * kTileM, params.tokens_q)));
    });
    const int count = shared.list.count;
    const int items = count * heads;  // the tiles of every query head
    const auto load = [&](const Item& item, std::uint32_t stage) {
      const int row_begin = ListedTile::of(shared.list.entries[item.place]).index * kTileM;
      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      q_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.q, item.head, params.tokens_q), row_begin);
      dout_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.dout, item.head, params.tokens_q), row_begin);
      if (threadIdx.x < kTileM / 2) {
        const std::int64_t row = static_cast<std::int64_t>(item.head) * row_blocks * kTileM +
                                 row_begin + threadIdx.x * 2;
        cp_async(shared_address(shared.row_terms[stage][threadIdx.x * 2]),
                 params.row_terms + row * 2);
      }
    };
    // dQ of an item whose dS is in shared memory: this warp's queries and columns.
    const MatrixAddress<kTileM> dq_left{ds_tile.by_columns().at(0, Dq::row(warp) / 16)};
    const MatrixAddress<kDim> dq_right{k_tile.by_rows().at(0, Dq::column(warp) / 16)};
    const auto add_dq = [&](const Item& item, std::uint32_t stage) {
      float dq[Dq::kCount][4];
      multiply_dq<Shape>(dq, dq_left + stage * kDsBytes, dq_right);
      Dq::add_in_background(
          params.dq_sum,
          item.head * row_blocks + ListedTile::of(shared.list.entries[item.place]).index, dq,
          shared_address(shared.dq));
    };

    Item next{first_head, 0};
    Item item = next;
    if (items > 0) load(next, 0);
    cp_async_commit();
    for (int i = 0; i < items; ++i) {
      cp_async_wait<0>();
      __syncthreads();  // item i has arrived; dS of i − 1 is written, everything of i − 2 is read
      const Item previous = item;
      item = next;
      next.advance(count);
      const std::uint32_t stage = i % 2;
      if (i + 1 < items) load(next, 1 - stage);
      cp_async_commit();
      if (i > 0) add_dq(previous, 1 - stage);

      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      const SharedTile<kTileM> ds_stage{ds_tile.base + stage * kDsBytes};
      float p[2][4][4];
      scores.multiply(p, k_tile, q_stage);
      const ListedTile tile = ListedTile::of(shared.list.entries[item.place]);
      const int row_begin = tile.index * kTileM;
      if (tile.test_lt) mask_scores<Shape>(p, scores, row_begin, shared.columns, &Column::lt);
      if (tile.test_ut) mask_scores<Shape>(p, scores, row_begin, shared.columns, &Column::ut);
      // From here on without a branch: exponentials and products are under way together.
      scores.exponentiate(p, shared.row_terms[stage], scale_log2);
      float ds[2][4][4];
      scores.multiply(ds, v_tile, dout_stage);
      scores.store(p, p_tile);
      scores.differentiate(ds, p, shared.row_terms[stage]);
      scores.store(ds, ds_stage);

      scores.add_own(dv, p, dout_stage);
      scores.add_own(dk, ds, q_stage);
      scores.meet_partner();
      scores.add_partners(dv, p_tile, dout_stage);
      scores.add_partners(dk, ds_stage, q_stage);
    }
    __syncthreads();
    if (items > 0) add_dq(item, (items - 1) % 2);
    __syncthreads();  // the list and the stages are written next
  }
  cp_async_wait_all();
  bulk_wait();      // the sums have left shared memory
  __syncthreads();  // k and v have arrived, though no tile was visited

  if (params.head_parts > 1) {
    Dk::add(params.dk_sum, kv_head * key_blocks + work.block, dk);
    Dk::add(params.dv_sum, kv_head * key_blocks + work.block, dv);
    return;
  }
  Dk::template stage<T>(dk, params.scale, k_tile);
  Dk::template stage<T>(dv, 1, v_tile);
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  copy_rows<kTileN, Shape::kThreads>(k_tile, head_rows<T>(params.dk, kv_head, params.tokens_k),
                                     key_begin, thread);
  copy_rows<kTileN, Shape::kThreads>(v_tile, head_rows<T>(params.dv, kv_head, params.tokens_k),
                                     key_begin, thread);
}

}  // namespace longca::flashmask
