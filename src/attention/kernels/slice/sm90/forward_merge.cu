#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_merge(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  return dispatch<true, 1>(params, dtype, head_dim, stream);
}

}  // namespace longca::slice::sm90
