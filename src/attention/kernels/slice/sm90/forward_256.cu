#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_256(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                  cudaStream_t stream) {
  const auto launch_instance = [&]<typename Element>() {
    launch_wide<Element, HeadDims<256>, true>(params, dtype, dims, pairs, stream);
  };
  return dims == DimPair{256, 256} && mma::instantiate_wide(dtype, launch_instance);
}

}  // namespace longca::slice::sm90
