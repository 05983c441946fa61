#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_capped(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  return params.accumulate ? dispatch<true, 1, true>(params, dtype, head_dim, stream)
                           : dispatch<false, 1, true>(params, dtype, head_dim, stream);
}

}  // namespace longca::slice::sm90
