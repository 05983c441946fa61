#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_store(const ForwardParams& params, DType dtype, const DimPair& dims,
                    cudaStream_t stream) {
  return dispatch<false, 1>(params, dtype, dims, stream);
}

}  // namespace longca::slice::sm90
