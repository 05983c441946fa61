#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/instantiate.h"
#include "attention/kernels/flashmask/backward.cuh"
#include "attention/kernels/flashmask/launch.h"
#include "core/cuda/error.h"

namespace longca::flashmask {
namespace {

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  backward_pass<Shape>(params, params, stream, [&] {
    const int key_blocks = (params.tokens_k + Shape::kTileN - 1) / Shape::kTileN;
    constexpr int kBytes = sizeof(BackwardShared<Shape>);
    LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    backward_kernel<Shape><<<static_cast<unsigned>(key_blocks * params.heads_k * params.head_parts),
                             Shape::kThreads, kBytes, stream>>>(params);
    LONGCA_CUDA(cudaGetLastError());
  });
}

}  // namespace

int backward_tile_n(int shared_bytes) {
  using Large = BackwardShape<__nv_bfloat16, 128, kMaxTileN>;
  return sizeof(BackwardShared<Large>) <= static_cast<std::size_t>(shared_bytes) ? kMaxTileN : 64;
}

int min_backward_shared_bytes() {
  return sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 64>>);
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (params.tile_n == kMaxTileN) {
      launch<BackwardShape<Element, kDim, kMaxTileN>>(params, stream);
    } else {
      launch<BackwardShape<Element, kDim, 64>>(params, stream);
    }
  });
}

}  // namespace longca::flashmask
