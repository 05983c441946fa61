#pragma once

#include "attention/adapters/fa2_sparse_native/params.h"
#include "attention/cuda/mma/backward_tile.cuh"
#include "attention/cuda/mma/softmax.cuh"
#include "attention/cuda/mma/tile_list.cuh"

namespace longca::fa2_sparse {

/// What a work group keeps in shared memory besides tiles.
template <typename Shape>
struct BackwardShared : Shape::Tiles {
  alignas(128) float dq[Shape::kTileM * Shape::kDim];  ///< on its way to the sums
  TileList list;  ///< entries 2 · query tile + whether its cells must be tested
};

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

  const int row_tiles = (params.tokens_q + kTileM - 1) / kTileM;
  const int key_tiles = (params.tokens_k + kTileN - 1) / kTileN;
  const int work = params.order[blockIdx.x];
  const int unit = work / key_tiles;
  const int block = work % key_tiles;
  const int kv_head = unit / params.head_parts;
  const int heads = params.heads_q / params.heads_k / params.head_parts;
  const int key_begin = block * kTileN;
  const Tokens keys{key_begin, key_begin + kTileN};
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

  float dk[Dk::kCount][4] = {};
  float dv[Dk::kCount][4] = {};
  const float scale_log2 = params.scale * kLog2E;
  const int tiles_per_block = params.q_block / kTileM;
  // Heads that share a list are one run through it; a list of more tiles than fit is cut.
  const int chunks = (row_tiles + kListCapacity - 1) / kListCapacity;
  for (int run = 0; run < heads / params.heads_per_list * chunks; ++run) {
    const int first_head = unit * heads + run / chunks * params.heads_per_list;
    const std::uint32_t* kept =
        params.row_of(first_head, params.heads_q, key_begin / params.k_block);
    shared.list.template fill<Shape::kThreads>(
        run % chunks * kListCapacity, row_tiles, [&](int index) {
          const Tokens rows{index * kTileM, min((index + 1) * kTileM, params.tokens_q)};
          if (!has_bit(kept, index / tiles_per_block) || params.band.empty(rows, keys)) return -1;
          return 2 * index + static_cast<int>(params.band.partial(rows, keys));
        });
    const int count = shared.list.count;
    const int items = count * params.heads_per_list;
    const auto tile_of = [&](const Item& item) { return shared.list.entries[item.place] >> 1; };
    const auto load = [&](const Item& item, std::uint32_t stage) {
      const int row_begin = tile_of(item) * kTileM;
      const SharedTile<kDim> q_stage{q_tile.base + stage * kTileBytes};
      const SharedTile<kDim> dout_stage{dout_tile.base + stage * kTileBytes};
      q_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.q, item.head, params.tokens_q), row_begin);
      dout_stage.template load<kTileM, Shape::kThreads>(
          head_rows<const T>(params.dout, item.head, params.tokens_q), row_begin);
      if (threadIdx.x < kTileM / 2) {
        const std::int64_t row =
            static_cast<std::int64_t>(item.head) * row_tiles * kTileM + row_begin + threadIdx.x * 2;
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
      Dq::add_in_background(params.dq_sum, item.head * row_tiles + tile_of(item), dq,
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
      const int entry = shared.list.entries[item.place];
      if ((entry & 1) != 0) {
        const int row_begin = (entry >> 1) * kTileM;
        scores.mask(p, [&](int key) {
          return [=, &params](int query) {
            return !params.band.allows(row_begin + query, key_begin + key);
          };
        });
      }
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
  bulk_wait();  // the sums have left shared memory
  __syncthreads();  // k and v have arrived, though no tile was visited

  if (params.head_parts > 1) {
    Dk::add(params.dk_sum, kv_head * key_tiles + block, dk);
    Dk::add(params.dv_sum, kv_head * key_tiles + block, dv);
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

}  // namespace longca::fa2_sparse
