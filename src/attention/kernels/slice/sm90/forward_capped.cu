#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_capped(const ForwardParams& params, DType dtype, const DimPair& dims,
                     cudaStream_t stream) {
  return params.accumulate ? dispatch<true, 1, true>(params, dtype, dims, stream)
                           : dispatch<false, 1, true>(params, dtype, dims, stream);
}

}  // namespace longca::slice::sm90
