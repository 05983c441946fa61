#pragma once

#include <cuda_runtime_api.h>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// Launch the kernel that writes O and LSE, the same by pairs of CTAs that share what they
/// load, or the one that merges; false if the program was built without one for this dtype and head
/// dimension. Three files, so that they are built side by side.
bool dispatch_store(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_pairs(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_merge(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::slice::sm90
