#include "attention/kernels/common/mma/instantiate.h"
#include "attention/kernels/slice/sm80/forward.cuh"
#include "attention/kernels/slice/sm80/launch.h"
#include "core/cuda/error.h"

namespace longca::slice {
namespace {

template <typename Shape>
void launch(const ForwardParams& params, int section_heads, cudaStream_t stream) {
  const int groups = params.lists.tiles_per_list * (params.heads_q / params.lists.pack);
  if (groups == 0) return;
  constexpr int kBytes = sizeof(typename Shape::Tiles);
  LONGCA_CUDA(cudaFuncSetAttribute(generic::forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  generic::forward_kernel<Shape>
      <<<static_cast<unsigned>(groups), Shape::kThreads, kBytes, stream>>>(params, section_heads);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

int generic_shared_bytes() {
  return sizeof(generic::Shape<__nv_bfloat16, 128>::Tiles);
}

void launch_generic_forward(const ForwardParams& params, DType dtype, int head_dim,
                            int section_heads, cudaStream_t stream) {
  mma::instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    launch<generic::Shape<Element, kDim>>(params, section_heads, stream);
  });
}

}  // namespace longca::slice
