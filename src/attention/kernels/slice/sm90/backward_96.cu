#include "attention/kernels/slice/sm90/backward_launch.cuh"

namespace longca::slice::sm90 {

bool backward_96(const BackwardParams& params, DType dtype, const DimPair& dims, BackwardPart part,
                 cudaStream_t stream) {
  if (instance_dims(params, dtype, dims) != DimPair{96, 96}) return false;
  return mma::instantiate_wide(dtype, [&]<typename Element>() {
    launch<Element, HeadDims<96>, false>(params, dtype, dims, part, stream);
  });
}

}  // namespace longca::slice::sm90
