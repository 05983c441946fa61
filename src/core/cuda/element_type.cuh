#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "core/dtype.h"

namespace longca {

/// Calls `call` with a null pointer of CUDA's own type that `dtype` names.
template <typename Call>
void with_type(DType dtype, Call&& call) {
  switch (dtype) {
    case DType::float32:
      return call(static_cast<float*>(nullptr));
    case DType::bfloat16:
      return call(static_cast<__nv_bfloat16*>(nullptr));
    case DType::float16:
      return call(static_cast<__half*>(nullptr));
  }
}

}  // namespace longca
