#pragma once

#include <cuda_runtime_api.h>

#include "attention/slice/launch.h"
#include "core/dtype.h"

namespace longca::slice {

/// Queues the forward pass on any device of compute capability 8.0 or later. `section_heads` head
/// blocks (of lists.pack query heads) are worked on together, so that their keys stay in L2. Needs
/// no work counter. `dtype` and `head_dim` are among those that the program was built with.
void launch_generic_forward(const ForwardParams& params, DType dtype, int head_dim,
                            int section_heads, cudaStream_t stream);

/// Bytes of shared memory that a work group needs, at the largest head dimension.
int generic_shared_bytes();

}  // namespace longca::slice
