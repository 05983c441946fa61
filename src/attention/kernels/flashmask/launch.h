#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/common/mma/params.h"
#include "attention/kernels/flashmask/column_tiles.h"
#include "core/dtype.h"

namespace longca::flashmask {

using namespace mma;  // NOLINT(google-build-using-namespace): building blocks of the kernels

/// The mask for a pass; device pointers.
struct MaskArgs {
  const Column* columns;      ///< padded to whole key blocks
  const BlockBounds* bounds;  ///< per key block
  const std::int32_t* order;  ///< row blocks (forward) or key blocks (backward), longest first
  int section_heads;          ///< heads whose blocks are interleaved, so that they share L2
};

struct ForwardParams : AttentionArgs, MaskArgs {};

struct BackwardParams : AttentionArgs, GradientArgs, MaskArgs {};

/// Tile sizes: query rows (M) and keys (N).
inline constexpr int kForwardTileM = 128;
inline constexpr int kForwardTileN = 64;
inline constexpr int kBackwardTileM = 64;
/// Maximum kTileN of both passes; columns are padded to a multiple of it.
inline constexpr int kMaxTileN = 128;

/// Minimum bytes of shared memory per CTA.
int min_forward_shared_bytes();
int min_backward_shared_bytes();
/// Keys per backward tile for a limit of `shared_bytes` per CTA.
int backward_tile_n(int shared_bytes);

/// Launch a pass on `stream`. `dtype` and `head_dim` must be instantiated (mma/instances.h); tensor
/// rows are 16-byte aligned.
void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
/// Includes the preprocess and postprocess kernels (mma/backward_pass.cuh).
void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::flashmask
