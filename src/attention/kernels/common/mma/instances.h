#pragma once

#include "attention/api/kernel.h"

namespace longca::mma {

/// States the element types and dimensions of heads that the build has of every kernel of our own
/// (instantiate.h). bfloat16 of 128 is what the published tables have; the rest costs build time.
inline void set_instances(Capabilities& can) {
  can.dtypes = {DType::bfloat16};
  can.head_dims = {128};
#ifdef LONGCA_ALL_INSTANTIATIONS
  can.dtypes.push_back(DType::float16);
  can.head_dims.insert(can.head_dims.begin(), 64);
#endif
}

}  // namespace longca::mma
