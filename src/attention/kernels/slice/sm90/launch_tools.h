#pragma once

#include <cuda.h>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// The tensor map of a [tokens, heads, dim] tensor of 16-bit elements. Boxes are 64 elements wide,
/// `box_heads` × `box_tokens` high: in shared memory rows of 128 bytes in (token, head) order,
/// 128-byte swizzled. Throws std::invalid_argument that calls the tensor `name`.
CUtensorMap tensor_map(const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens, DType dtype);

/// SMs of the current device.
int sm_count();

/// Throws std::invalid_argument unless `pack` is 1, 2, 4 or 8 and divides the query heads of a KV
/// head.
void check_pack(int pack, int group_size);

}  // namespace longca::slice::sm90
