#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

namespace {

template <int kCluster, bool kEarlier>
using Shape = ForwardShape<__nv_bfloat16, HeadDims<128>, false, kCluster, false, kEarlier, true>;

template <bool kEarlier>
void launch_unchecked(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                      cudaStream_t stream) {
  pairs ? launch<Shape<2, kEarlier>>(params, dtype, dims, stream)
        : launch<Shape<1, kEarlier>>(params, dtype, dims, stream);
}

}  // namespace

bool dispatch_unchecked(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                        cudaStream_t stream) {
  if (!has_unchecked(dtype, dims)) return false;
  params.earlier.o.data != nullptr ? launch_unchecked<true>(params, dtype, dims, pairs, stream)
                                   : launch_unchecked<false>(params, dtype, dims, pairs, stream);
  return true;
}

}  // namespace longca::slice::sm90
