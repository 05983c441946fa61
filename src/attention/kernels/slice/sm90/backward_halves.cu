#include "attention/kernels/slice/sm90/backward_launch.cuh"

namespace longca::slice::sm90 {

void launch_halves(const BackwardKernelArgs& args, DType dtype, cudaStream_t stream) {
  const bool launched =
      mma::instantiate<mma::kSliceInstances>(dtype, 128, [&]<typename T, int kDim>() {
        if constexpr (kDim == 128)
          launch_main<BackwardShape<T, HeadDims<128>, false, true>>(args, stream);
      });
  if (!launched) throw_no_instance("backward kernel for halves", dtype, {128, 128});
}

}  // namespace longca::slice::sm90
