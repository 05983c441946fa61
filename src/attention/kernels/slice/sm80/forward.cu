#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/sm80/forward.cuh"
#include "core/cuda/error.h"

namespace longca::slice {
namespace {

template <typename Shape>
void launch(const ForwardParams& params, cudaStream_t stream) {
  const int ctas = params.lists.tiles_per_list * (params.heads_q / params.lists.pack);
  if (ctas == 0) return;
  const int group_blocks = params.heads_q / params.heads_k / params.lists.pack;
  constexpr int kBytes = sizeof(typename Shape::Tiles);
  LONGCA_CUDA(cudaFuncSetAttribute(sm80::forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  sm80::forward_kernel<Shape><<<static_cast<unsigned>(ctas), Shape::kThreads, kBytes, stream>>>(
      params, params.section_heads * group_blocks);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

int sm80_forward_shared_bytes() {
  return sizeof(sm80::Shape<__nv_bfloat16, 128>::Tiles);
}

void launch_sm80_forward(const ForwardParams& params, DType dtype, int head_dim,
                         cudaStream_t stream) {
  const bool is_built = mma::instantiate<mma::kSliceInstances>(
      dtype, head_dim,
      [&]<typename Element, int kDim>() { launch<sm80::Shape<Element, kDim>>(params, stream); });
  if (!is_built) throw_no_instance("forward kernel for mma.sync", dtype, {head_dim, head_dim});
}

}  // namespace longca::slice
