#pragma once

#include "attention/api/kernel.h"

namespace longca::mma {

/// Sets the element types and head dimensions that this build instantiates of our own kernels
/// (instantiate.h). The published tables have bfloat16 of 128; the rest costs build time.
inline void set_instances(Capabilities& can) {
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
#ifdef LONGCA_ALL_INSTANTIATIONS
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
#endif
}

}  // namespace longca::mma
