#pragma once

#include "attention/kernels/block_sparse_fa2/params.h"
#include "attention/kernels/block_sparse_fa2/tile_list.cuh"
#include "attention/kernels/common/mma/backward_keys.cuh"

namespace longca::fa2_sparse {

/// Shared memory of a CTA.
template <typename Shape>
struct BackwardShared : BackwardBuffers<Shape> {
  TileList list;
};

/// dK and dV of kTileN keys of one KV head, summed over the query heads that read it (all of them,
/// or one part of head_parts, whose sums are then added in float32), and what these keys add to dQ.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1) backward_kernel(const BackwardParams params) {
  constexpr int kTileM = Shape::kTileM;
  constexpr int kTileN = Shape::kTileN;
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<BackwardShared<Shape>*>(shared_bytes);

  const TileCounts<Shape> tiles(params);
  const int work = params.order[blockIdx.x];
  const int unit = work / tiles.k;
  const int block = work % tiles.k;
  const int kv_head = unit / params.head_parts;
  const int heads = params.heads_q / params.heads_k / params.head_parts;
  const int key_begin = block * kTileN;
  const Tokens keys{key_begin, key_begin + kTileN};
  load_keys(params, shared, kv_head, key_begin);

  KeySums<Shape> dk = {};
  KeySums<Shape> dv = {};
  const BackwardKeys owned(params, shared, tiles, kv_head, block);
  const auto mask = [&](const ScoreWarp<Shape>& warp, auto& s, TileEntry tile) {
    if (!tile.test) return;
    const int row_begin = tile.index * kTileM;
    warp.mask(s, [&](int key) {
      return [=, &params](int query) {
        return !params.band.allows(row_begin + query, key_begin + key);
      };
    });
  };
  const int tiles_per_block = params.q_block / kTileM;
  // Heads that share a list are one run through it; a list of more tiles than fit is cut.
  const int chunks = (tiles.q + kListCapacity - 1) / kListCapacity;
  for (int run = 0; run < heads / params.heads_per_list * chunks; ++run) {
    const int first_head = unit * heads + run / chunks * params.heads_per_list;
    const std::uint32_t* kept =
        params.row_of(first_head, params.heads_q, key_begin / params.k_block);
    shared.list.template fill<Shape::kThreads>(
        run % chunks * kListCapacity, tiles.q, [&](int index) {
          const Tokens rows{index * kTileM, min((index + 1) * kTileM, params.tokens_q)};
          if (!has_bit(kept, index / tiles_per_block)) return -1;
          return entry_of(index, params.band, rows, keys);
        });
    owned.template visit<TileEntry>(shared.list, first_head, params.heads_per_list, dk, dv, mask);
  }
  owned.finish(dk, dv);
}

}  // namespace longca::fa2_sparse
