#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_unchecked(const ForwardParams& params, DType dtype, const DimPair& dims,
                        cudaStream_t stream) {
  if (dtype != DType::bfloat16 || instance_dim(dims) != 128) return false;
  launch<ForwardShape<__nv_bfloat16, HeadDims<128>, false, 2, false, false, true>>(params, dtype,
                                                                                   dims, stream);
  return true;
}

}  // namespace longca::slice::sm90
