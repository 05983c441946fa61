#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_in_turn(const ForwardParams& params, DType dtype, const DimPair& dims,
                      cudaStream_t stream) {
  if (!has_unchecked(dtype, dims)) return false;
  using Shape =
      ForwardShape<__nv_bfloat16, HeadDims<128>, false, 1, false, false, true, /*kInTurn=*/true>;
  launch<Shape>(params, dtype, dims, stream);
  return true;
}

}  // namespace longca::slice::sm90
