#include "attention/kernels/slice/sm90/backward_launch.cuh"

namespace longca::slice::sm90 {

bool backward_256(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
                  cudaStream_t stream) {
  const auto launch_instance = [&]<typename Element>() {
    launch<Element, HeadDims<256>>(params, dtype, dims, part, stream);
  };
  return dims == DimPair{256, 256} && mma::instantiate_wide(dtype, launch_instance);
}

}  // namespace longca::slice::sm90
