#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_192(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                  cudaStream_t stream) {
  const auto launch_instance = [&]<typename Element>() {
    launch_wide<Element, HeadDims<192, 128>, false>(params, dtype, dims, pairs, stream);
  };
  return dims == DimPair{192, 128} && mma::instantiate_wide(dtype, launch_instance);
}

}  // namespace longca::slice::sm90
