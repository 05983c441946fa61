#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/block_sparse_fa2/band.h"
#include "attention/kernels/common/mma/params.h"
#include "core/dtype.h"
#include "core/rounding.h"
#include "mask/list_of_head.h"

namespace longca::fa2_sparse {

using namespace mma;  // NOLINT(google-build-using-namespace): building blocks of the kernels

/// The mask for a pass; device pointers.
struct BlockArgs {
  /// Bitmap [lists, list_rows, row_words] (BlockBits): kept key blocks per query block (forward),
  /// or the query blocks that keep it per key block (backward).
  const std::uint32_t* words;
  int lists;  ///< query head h of H uses list h · lists / H
  int list_rows;
  int row_words;
  int q_block, k_block;  ///< tokens per block
  Band band;
  /// The work of CTA i, longest first: unit · tiles + tile. A unit is kHeads query heads (forward)
  /// or one of the head_parts of a KV head (backward).
  const std::int32_t* order;

#ifdef __CUDACC__
  /// One row of the bitmap of a query head's list.
  __device__ __forceinline__ const std::uint32_t* row_of(int head, int heads_q, int row) const {
    const int list = static_cast<int>(list_of_head(std::int64_t{head}, lists, heads_q));
    return words + (static_cast<std::int64_t>(list) * list_rows + row) * row_words;
  }
#endif
};

/// Whether bit `block` of a row is set.
#ifdef __CUDACC__
__device__ __forceinline__ bool has_bit(const std::uint32_t* row, int block) {
  return (row[block / 32] >> (block % 32) & 1) != 0;
}
#endif

struct ForwardParams : AttentionArgs, BlockArgs {};

struct BackwardParams : AttentionArgs, GradientArgs, BlockArgs {
  /// Query heads of a unit that share a list: all of them, or 1.
  int heads_per_list;
};

/// Tile sizes: keys (N) and query rows (M).
inline constexpr int kForwardTileN = 64;
inline constexpr int kBackwardTileM = 64;

/// The query rows of a forward tile: `tokens` tokens of each of `heads` query heads.
struct ForwardTile {
  int tokens = 128;
  int heads = 1;
};

/// Bytes of shared memory per CTA for the largest forward tile, and for a backward tile of `tile_n`
/// keys (128 or 64).
int forward_shared_bytes();
int backward_shared_bytes(int tile_n);

/// Launch a pass on `stream`. `dtype` and `head_dim` must be instantiated (mma/instances.h); tensor
/// rows are 16-byte aligned; a tile's tokens are within one block.
void launch_forward(const ForwardParams& params, ForwardTile tile, DType dtype, int head_dim,
                    cudaStream_t stream);
/// Includes the preprocess and postprocess kernels (mma/backward_pass.cuh).
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

/// The tiles of a pass and their rows in the bitmap.
struct TileGrid {
  int tile_tokens;  ///< divides own_block
  int own_tokens;   ///< queries (forward) or keys (backward)
  int own_block;    ///< tokens per block on the owned side
  int other_block;  ///< tokens per block on the other side
  bool by_queries;  ///< forward

  int tiles() const { return ceil_div(own_tokens, tile_tokens); }
};

/// counts [lists, tiles]: blocks that a CTA of the tile visits.
void count_blocks(const BlockArgs& blocks, const TileGrid& grid, std::int32_t* counts,
                  cudaStream_t stream);

}  // namespace longca::fa2_sparse
