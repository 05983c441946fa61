#include "attention/kernels/block_sparse_fa2/launch.h"
#include "attention/kernels/common/mma/backward_keys.cuh"
#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/common/mma/tile_list.cuh"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::fa2_sparse {
namespace {

/// The shared memory of a CTA.
template <typename Shape>
struct BackwardShared : BackwardBuffers<Shape> {
  TileList list;
};

/// dK and dV of kTileN keys of one KV head over its query heads, or over one of head_parts parts of
/// them, which are then added in float32; and these keys' contribution to dQ.
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
  // One run per list: heads that share it are processed together, kListCapacity tiles at a time.
  const int chunks = ceil_div(tiles.q, kListCapacity);
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

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  backward_pass<Shape>(params, params, stream, [&] {
    const int key_tiles = ceil_div(params.tokens_k, Shape::kTileN);
    constexpr int kBytes = sizeof(BackwardShared<Shape>);
    LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    backward_kernel<Shape><<<static_cast<unsigned>(key_tiles * params.heads_k * params.head_parts),
                             Shape::kThreads, kBytes, stream>>>(params);
    LONGCA_CUDA(cudaGetLastError());
  });
}

}  // namespace

int backward_shared_bytes(int tile_n) {
  return tile_n == 128 ? sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 128>>)
                       : sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 64>>);
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate<kOtherInstances>(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (params.tile_n == 128) {
      launch<BackwardShape<Element, kDim, 128>>(params, stream);
    } else {
      launch<BackwardShape<Element, kDim, 64>>(params, stream);
    }
  });
}

}  // namespace longca::fa2_sparse
