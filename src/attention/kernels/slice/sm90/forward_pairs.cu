#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_pairs(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream) {
  return dispatch<false, 2>(params, dtype, dims, stream);
}

}  // namespace longca::slice::sm90
