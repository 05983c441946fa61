#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/flashmask/params.h"
#include "core/dtype.h"

namespace longca::flashmask {

/// Query rows and keys of a forward tile; query rows of a backward one.
inline constexpr int kForwardTileM = 128;
inline constexpr int kForwardTileN = 64;
inline constexpr int kBackwardTileM = 64;
/// Max keys of a backward tile; columns are padded to a multiple of it.
inline constexpr int kMaxTileN = 128;

/// Min bytes of shared memory of a CTA of a pass.
int min_forward_shared_bytes();
int min_backward_shared_bytes();
/// Keys of a backward tile where a CTA may have `shared_bytes`.
int backward_tile_n(int shared_bytes);

/// Queue a pass. `dtype` and `head_dim` are among those that the program was built with
/// (can_express.cpp); the tensors' rows are 16-byte aligned.
void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
/// Also clears the sums before, and converts them into tensors after.
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::flashmask
