#include "attention/kernels/slice/sm90/backward_launch.cuh"

namespace longca::slice::sm90 {

void launch_halves(const BackwardKernelArgs& args, DType dtype, cudaStream_t stream) {
  mma::instantiate<mma::kSliceInstances>(dtype, 128, [&]<typename T, int kDim>() {
    if constexpr (kDim == 128)
      launch_main<BackwardShape<T, HeadDims<128>, false, true>>(args, stream);
  });
}

}  // namespace longca::slice::sm90
