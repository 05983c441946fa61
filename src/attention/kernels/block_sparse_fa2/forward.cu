#include "attention/kernels/block_sparse_fa2/forward.cuh"
#include "attention/kernels/block_sparse_fa2/launch.h"
#include "attention/kernels/common/mma/instantiate.h"
#include "core/cuda/error.h"

namespace longca::fa2_sparse {
namespace {

template <typename Shape>
void launch(const ForwardParams& params, cudaStream_t stream) {
  const int row_tiles = (params.tokens_q + Shape::kRows - 1) / Shape::kRows;
  if (row_tiles == 0) return;
  constexpr int kBytes = sizeof(typename Shape::Shared);
  LONGCA_CUDA(cudaFuncSetAttribute(forward_kernel<Shape>,
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  forward_kernel<Shape><<<static_cast<unsigned>(row_tiles * (params.heads_q / Shape::kHeads)),
                          Shape::kThreads, kBytes, stream>>>(params);
  LONGCA_CUDA(cudaGetLastError());
}

/// The three tiles, by the tokens that share a list and the heads.
template <typename Element, int kDim>
using LongBlocks = SparseForwardShape<Element, kDim, 128, 1>;
template <typename Element, int kDim>
using PairedHeads = SparseForwardShape<Element, kDim, 64, 2>;
template <typename Element, int kDim>
using ShortBlocks = SparseForwardShape<Element, kDim, 64, 1>;

}  // namespace

int forward_shared_bytes() {
  return sizeof(LongBlocks<__nv_bfloat16, 128>::Shared);
}

void launch_forward(const ForwardParams& params, ForwardTile tile, DType dtype, int head_dim,
                    cudaStream_t stream) {
  instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (tile.tokens == 128) {
      launch<LongBlocks<Element, kDim>>(params, stream);
    } else if (tile.heads == 2) {
      launch<PairedHeads<Element, kDim>>(params, stream);
    } else {
      launch<ShortBlocks<Element, kDim>>(params, stream);
    }
  });
}

}  // namespace longca::fa2_sparse
