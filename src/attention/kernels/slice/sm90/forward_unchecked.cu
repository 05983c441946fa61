#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

namespace {

template <int kCluster>
using Shape = ForwardShape<__nv_bfloat16, HeadDims<128>, false, kCluster, false, false, true>;

}  // namespace

bool dispatch_unchecked(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                        cudaStream_t stream) {
  if (!has_unchecked(dtype, dims)) return false;
  pairs ? launch<Shape<2>>(params, dtype, dims, stream)
        : launch<Shape<1>>(params, dtype, dims, stream);
  return true;
}

}  // namespace longca::slice::sm90
