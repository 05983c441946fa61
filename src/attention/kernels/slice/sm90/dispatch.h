#pragma once

#include <cuda_runtime_api.h>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// Launch the forward kernel that stores O and LSE, the same by clusters of two CTAs, or the one
/// that merges into float32 O and LSE; false if this build has no instance for the dtype and head
/// dimension. One source file each, so that they compile in parallel.
bool dispatch_store(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_pairs(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_merge(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::slice::sm90
