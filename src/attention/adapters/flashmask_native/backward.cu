#include "attention/adapters/flashmask_native/backward.cuh"
#include "attention/adapters/flashmask_native/backward_rows.cuh"
#include "attention/adapters/flashmask_native/instantiate.h"
#include "attention/adapters/flashmask_native/launch.h"
#include "core/cuda/error.h"

namespace longca::flashmask {
namespace {

template <typename Parts, typename Shape>
void convert(const float* sums, float factor, const TensorArg& to, int tokens, int heads,
             cudaStream_t stream) {
  const int blocks = (tokens + Parts::kTileRows - 1) / Parts::kTileRows;
  convert_sums_kernel<Parts, typename Shape::T, Shape::kDim>
      <<<dim3(blocks, heads), Parts::kThreads, 0, stream>>>(sums, factor, to, tokens);
  LONGCA_CUDA(cudaGetLastError());
}

template <typename Shape>
void launch(const BackwardParams& params, cudaStream_t stream) {
  const int row_blocks = (params.tokens_q + Shape::kTileM - 1) / Shape::kTileM;
  const int key_blocks = (params.tokens_k + Shape::kTileN - 1) / Shape::kTileN;
  const auto clear = [&](float* sums, std::int64_t rows) {
    LONGCA_CUDA(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(rows) * Shape::kDim * 4, stream));
  };
  const int padded_rows = row_blocks * Shape::kTileM;
  if (row_blocks > 0) {
    clear(params.dq_sum, std::int64_t{params.heads_q} * padded_rows);
    const int row_groups = padded_rows * (Shape::kDim / 8) / kRowThreads;
    row_terms_kernel<Shape>
        <<<dim3(row_groups, params.heads_q), kRowThreads, 0, stream>>>(params, padded_rows);
    LONGCA_CUDA(cudaGetLastError());
  }
  if (key_blocks > 0) {
    const bool sums = params.head_parts > 1;
    const std::int64_t rows = std::int64_t{params.heads_k} * key_blocks * Shape::kTileN;
    if (sums) clear(params.dk_sum, rows);
    if (sums) clear(params.dv_sum, rows);
    constexpr int kBytes = sizeof(typename Shape::Shared);
    LONGCA_CUDA(cudaFuncSetAttribute(backward_kernel<Shape>,
                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    backward_kernel<Shape><<<static_cast<unsigned>(key_blocks * params.heads_k * params.head_parts),
                             Shape::kThreads, kBytes, stream>>>(params);
    LONGCA_CUDA(cudaGetLastError());
    using Dk = typename Shape::DkFragments;
    const int heads = params.heads_k;
    if (sums)
      convert<Dk, Shape>(params.dk_sum, params.scale, params.dk, params.tokens_k, heads, stream);
    if (sums) convert<Dk, Shape>(params.dv_sum, 1, params.dv, params.tokens_k, heads, stream);
  }
  if (row_blocks > 0) {
    convert<typename Shape::DqFragments, Shape>(params.dq_sum, params.scale, params.dq,
                                                params.tokens_q, params.heads_q, stream);
  }
}

}  // namespace

int backward_tile_n(int shared_bytes) {
  using Large = BackwardShape<__nv_bfloat16, 128, kMostTileN>;
  return sizeof(Large::Shared) <= static_cast<std::size_t>(shared_bytes) ? kMostTileN : 64;
}

int least_backward_shared_bytes() {
  return sizeof(BackwardShape<__nv_bfloat16, 128, 64>::Shared);
}

void launch_backward(const BackwardParams& params, DType dtype, int head_dim, cudaStream_t stream) {
  instantiate(dtype, head_dim, [&]<typename Element, int kDim>() {
    if (params.tile_n == kMostTileN) {
      launch<BackwardShape<Element, kDim, kMostTileN>>(params, stream);
    } else {
      launch<BackwardShape<Element, kDim, 64>>(params, stream);
    }
  });
}

}  // namespace longca::flashmask
