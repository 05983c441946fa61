#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/block_sparse_fa2/params.h"
#include "core/dtype.h"

namespace longca::fa2_sparse {

/// Keys of a forward tile, query rows of a backward one.
inline constexpr int kForwardTileN = 64;
inline constexpr int kBackwardTileM = 64;

/// Query rows of a forward tile: those of `heads` query heads, of as many tokens each.
struct ForwardTile {
  int tokens = 128;
  int heads = 1;
};

/// Bytes of shared memory that a CTA of a pass needs: of the largest forward tile, and of a
/// backward tile of `tile_n` keys (128 or 64).
int forward_shared_bytes();
int backward_shared_bytes(int tile_n);

/// Queue a pass. `dtype` and `head_dim` are among those that the program was built with
/// (can_express.cpp); the tensors' rows are 16-byte aligned; a tile's tokens lie in one block.
void launch_forward(const ForwardParams& params, ForwardTile tile, DType dtype, int head_dim,
                    cudaStream_t stream);
/// Also clears the sums before, and converts them into tensors after.
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

/// The tiles of a pass: the tokens that they own, and the row of the lists with these tokens.
struct TileGrid {
  int tile_tokens;  ///< divides own_block
  int own_tokens;   ///< queries (forward) or keys (backward)
  int own_block;    ///< tokens of a block on that side
  int other_block;  ///< and on the side that is walked
  bool by_queries;  ///< forward

  int tiles() const { return (own_tokens + tile_tokens - 1) / tile_tokens; }
};

/// Writes counts[list · tiles + tile], the blocks that a CTA of the tile visits.
void count_blocks(const BlockArgs& blocks, const TileGrid& grid, std::int32_t* counts,
                  cudaStream_t stream);

}  // namespace longca::fa2_sparse
