#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_pairs(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  return dispatch<false, 2>(params, dtype, head_dim, stream);
}

}  // namespace longca::slice::sm90
