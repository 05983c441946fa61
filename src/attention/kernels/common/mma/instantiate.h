#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/dtype.h"

namespace longca::mma {

/// Calls `launch<Element, kDim>()` if the build has that instance; else returns false.
template <typename Launch>
bool instantiate(DType dtype, int head_dim, Launch launch) {
  if (dtype == DType::bfloat16 && head_dim == 128) {
    launch.template operator()<__nv_bfloat16, 128>();
    return true;
  }
#ifdef LONGCA_ALL_INSTANTIATIONS
  if (dtype == DType::bfloat16 && head_dim == 64) {
    launch.template operator()<__nv_bfloat16, 64>();
    return true;
  }
  if (dtype == DType::float16 && head_dim == 128) {
    launch.template operator()<__half, 128>();
    return true;
  }
  if (dtype == DType::float16 && head_dim == 64) {
    launch.template operator()<__half, 64>();
    return true;
  }
#endif
  return false;
}

}  // namespace longca::mma
