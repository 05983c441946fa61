#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "attention/api/kernel.h"
#include "core/dtype.h"

namespace longca::mma {

/// Sets the dtypes and head dimensions for which this build instantiates our own kernels. The
/// default is bfloat16 with 128, that of the published tables; others cost build time.
inline void set_instances(Capabilities& can) {
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
#ifdef LONGCA_ALL_INSTANTIATIONS
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
#endif
}

#ifdef __CUDACC__
/// Calls `launch<Element, kDim>()` if the build has that instance, else returns false.
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
#endif

}  // namespace longca::mma
