#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/adapters/flashmask_native/params.h"
#include "core/dtype.h"

namespace longca::flashmask {

/// Query rows and keys of a tile.
struct TileShape {
  int m;
  int n;
};
inline constexpr TileShape kForwardTile{128, 64};
inline constexpr TileShape kBackwardTile{64, 128};

/// Queue a pass. `dtype` and `head_dim` are among those that the program was built with
/// (capabilities.cpp); the tensors' rows are 16-byte aligned.
void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
/// Also sets the sums to zero before and turns them into tensors after.
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::flashmask
