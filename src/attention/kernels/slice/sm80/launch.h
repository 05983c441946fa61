#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "core/dtype.h"

// The passes on any device of compute capability 8.0 or later. `dtype` and `head_dim` are among
// those that the program was built with.
namespace longca::slice {

/// Launches the forward pass. `section_heads` head blocks (of lists.pack query heads) are in work
/// at a time, so that their K and V stay in L2. Uses no work counter.
void launch_sm80_forward(const ForwardParams& params, DType dtype, int head_dim, int section_heads,
                         cudaStream_t stream);

/// Launches the backward pass over lists of packs of one head. `shared_bytes` is the maximum of the
/// device per CTA: with more, CTAs are larger and faster. The workspace has
/// sm80_workspace_bytes; the store modes are `overwrite` or `add_float32`.
void launch_sm80_backward(const BackwardParams& params, DType dtype, int head_dim, int shared_bytes,
                          cudaStream_t stream);
std::int64_t sm80_workspace_bytes(const BackwardParams& params, int head_dim);

/// Minimum shared memory per CTA, at the largest head dimension.
int sm80_forward_shared_bytes();
int sm80_backward_shared_bytes();

}  // namespace longca::slice
