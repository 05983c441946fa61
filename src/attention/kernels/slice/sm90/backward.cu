#include "attention/kernels/slice/sm90/backward_launch.cuh"

namespace longca::slice {

using namespace sm90;

std::int64_t backward_workspace_bytes(const BackwardParams& params, DType dtype,
                                      const DimPair& dims) {
  return Workspace(params, dtype, dims).dq_bytes;
}

std::int64_t backward_rows_bytes(const BackwardParams& params, DType dtype, const DimPair& dims) {
  return Workspace(params, dtype, dims).end;
}

void launch_backward(const BackwardParams& params, DType dtype, const DimPair& dims,
                     BackwardPart part, cudaStream_t stream) {
  const auto launch_instance = [&]<typename Element, int kDim>() {
    launch<Element, HeadDims<kDim>>(params, dtype, dims, part, stream);
  };
  if (backward_96(params, dtype, dims, part, stream)) return;
  if (mma::instantiate<mma::kSliceInstances>(dtype, instance_dim(dims), launch_instance)) return;
  if (backward_192(params, dtype, dims, part, stream)) return;
  if (backward_256(params, dtype, dims, part, stream)) return;
  throw_no_instance("backward kernel", dtype, dims);
}

}  // namespace longca::slice
