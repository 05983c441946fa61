#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_earlier(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                      cudaStream_t stream) {
  return pairs ? dispatch<false, 2, false, true>(params, dtype, dims, stream)
               : dispatch<false, 1, false, true>(params, dtype, dims, stream);
}

}  // namespace longca::slice::sm90
