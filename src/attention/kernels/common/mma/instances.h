#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "attention/api/kernel.h"
#include "core/dtype.h"

#ifndef LONGCA_INSTANTIATIONS
#error "LONGCA_INSTANTIATIONS is 0 (few), 1 (default) or 2 (all), as set by src/attention/kernels"
#endif

namespace longca::mma {

/// The dtypes and head dimensions for which a kernel of ours is compiled.
enum class Instances {
  one,   ///< bfloat16 with 128 dimensions, as in the published tables
  four,  ///< bfloat16 and float16 with 64 and 128
};
inline constexpr Instances kSliceInstances =
    LONGCA_INSTANTIATIONS >= 1 ? Instances::four : Instances::one;
inline constexpr Instances kOtherInstances =
    LONGCA_INSTANTIATIONS >= 2 ? Instances::four : Instances::one;
/// slice's instances of 96 dimensions and of wider heads, 192:128 and 256: in bfloat16, with all
/// instances in float16.
inline constexpr bool kWideInstances = LONGCA_INSTANTIATIONS >= 1;
inline constexpr bool kWideFloat16 = LONGCA_INSTANTIATIONS >= 2;
constexpr bool has_wide(DType dtype) {
  return dtype == DType::bfloat16 ? kWideInstances : dtype == DType::float16 && kWideFloat16;
}

inline void set_instances(Capabilities& can, Instances instances) {
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
  if (instances == Instances::one) {
    can.more_dims = "LONGCA_INSTANTIATIONS=all builds 64 and 128";
    return;
  }
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
}

#ifdef __CUDACC__
/// Calls `launch<Element, kDim>()` if there is that instance, else returns false.
template <Instances kInstances, typename Launch>
bool instantiate(DType dtype, int head_dim, Launch launch) {
  if (dtype == DType::bfloat16 && head_dim == 128) {
    launch.template operator()<__nv_bfloat16, 128>();
    return true;
  }
  if constexpr (kInstances == Instances::four) {
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
  }
  return false;
}

/// Calls `launch<Element>()` if 96 dimensions and wider heads have that instance, else returns
/// false.
template <typename Launch>
bool instantiate_wide(DType dtype, Launch launch) {
  if constexpr (kWideInstances) {
    if (dtype == DType::bfloat16) {
      launch.template operator()<__nv_bfloat16>();
      return true;
    }
  }
  if constexpr (kWideFloat16) {
    if (dtype == DType::float16) {
      launch.template operator()<__half>();
      return true;
    }
  }
  return false;
}
#endif

}  // namespace longca::mma
