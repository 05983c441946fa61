#pragma once

#include <cuda.h>

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm90 {

/// How the copy engine reads or writes boxes of 64 elements × `box_heads` × `box_tokens` of a
/// tensor of 16-bit elements; in shared memory their rows of 128 bytes lie (token, head) after one
/// another, swizzled. `name` is what an std::invalid_argument calls the tensor.
CUtensorMap tensor_map(const char* name, const TensorArg& tensor, int tokens, int heads, int dim,
                       int box_heads, int box_tokens, DType dtype);

}  // namespace longca::slice::sm90
