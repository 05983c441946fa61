#include "attention/kernels/block_sparse_fa2/backward.cuh"
#include "attention/kernels/block_sparse_fa2/launch.h"
#include "attention/kernels/common/mma/backward_pass.cuh"
#include "attention/kernels/common/mma/instantiate.h"
#include "core/cuda/error.h"

namespace longca::fa2_sparse {
namespace {

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  backward_pass<Shape>(params, params, stream, [&] {
    const int key_tiles = (params.tokens_k + Shape::kTileN - 1) / Shape::kTileN;
    constexpr int kBytes = sizeof(BackwardShared<Shape>);
    LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    backward_kernel<Shape><<<static_cast<unsigned>(key_tiles * params.heads_k * params.head_parts),
                             Shape::kThreads, kBytes, stream>>>(params);
    LONGCA_CUDA(cudaGetLastError());
  });
}

}  // namespace

int backward_shared_bytes(int tile_n) {
  return tile_n == 128 ? sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 128>>)
                       : sizeof(BackwardShared<BackwardShape<__nv_bfloat16, 128, 64>>);
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (params.tile_n == 128) {
      launch<BackwardShape<Element, kDim, 128>>(params, stream);
    } else {
      launch<BackwardShape<Element, kDim, 64>>(params, stream);
    }
  });
}

}  // namespace longca::fa2_sparse
