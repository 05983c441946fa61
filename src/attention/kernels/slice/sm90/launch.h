#pragma once

#include <cuda.h>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// The tensor map of a [tokens, heads, dim] tensor of 16-bit elements. Boxes are 64 elements wide,
/// `box_heads` × `box_tokens` high: in shared memory rows of 128 bytes in (token, head) order,
/// 128-byte swizzled. Throws std::invalid_argument that calls the tensor `name`.
CUtensorMap tensor_map(const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens, DType dtype);

/// The head dimension of the instances that compute `head_dim`, a multiple of 16 of at most 128:
/// columns from head_dim on are zeros there.
constexpr int instance_dim(int head_dim) {
  return head_dim <= 64 ? 64 : 128;
}

/// SMs of the current device.
int sm_count();

/// Throws std::invalid_argument unless `pack` is 1, 2, 4 or 8 and divides the query heads of a KV
/// head.
void check_pack(int pack, int group_size);

/// Launch an instance of the forward kernel: `store` writes O and LSE, `pairs` the same by clusters
/// of two CTAs, `merge` merges into float32 O and LSE, `capped` stores or merges without clusters,
/// with a softcap. False if this build has none for the dtype and head dimension. One source file
/// each, so that they compile in parallel.
bool dispatch_store(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_pairs(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_merge(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);
bool dispatch_capped(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream);

}  // namespace longca::slice::sm90
