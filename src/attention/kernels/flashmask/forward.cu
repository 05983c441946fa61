#include "attention/kernels/common/mma/instantiate.h"
#include "attention/kernels/flashmask/forward.cuh"
#include "attention/kernels/flashmask/launch.h"
#include "core/cuda/error.h"

namespace longca::flashmask {
namespace {

template <typename Shape>
void launch(const ForwardParams& params, cudaStream_t stream) {
  const int row_blocks = (params.tokens_q + Shape::kTileM - 1) / Shape::kTileM;
  if (row_blocks == 0) return;
  constexpr int kBytes = sizeof(ForwardShared<Shape>);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  forward_kernel<Shape>
      <<<static_cast<unsigned>(row_blocks * params.heads_q), Shape::kThreads, kBytes, stream>>>(
          params);
  LONGCA_CUDA(cudaGetLastError());
}

}  // namespace

int min_forward_shared_bytes() {
  return sizeof(
      ForwardShared<ForwardShape<__nv_bfloat16, 128, kForwardTileM, kForwardTileN, 4, 2>>);
}

void launch_forward(const ForwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    launch<ForwardShape<Element, kDim, kForwardTileM, kForwardTileN, 4, 2>>(params, stream);
  });
}

}  // namespace longca::flashmask
