#pragma once

#include <cstddef>

#include "attention/kernels/common/mma/backward_rows.cuh"
#include "core/cuda/error.h"

namespace longca::mma {

/// to = factor · sums, which lie in the order of `Parts` (fragments.cuh); to `accumulate`, that is
/// added.
template <typename Parts, typename Shape>
void convert_sums(const float* sums, float factor, const TensorArg& to, int tokens, int heads,
                  bool accumulate, cudaStream_t stream) {
  const int blocks = (tokens + Parts::kTileRows - 1) / Parts::kTileRows;
  convert_sums_kernel<Parts, typename Shape::T, Shape::kDim>
      <<<dim3(blocks, heads), Parts::kThreads, 0, stream>>>(sums, factor, to, tokens, accumulate);
  LONGCA_CUDA(cudaGetLastError());
}

/// Queues a backward pass: clears the sums and prepares the rows, `launch_tiles()`, turns the sums
/// into tensors. `launch_tiles` queues the kernel that adds up dQ and writes dK and dV, or adds
/// them up where head_parts > 1; it is left out without keys.
template <typename Shape, typename LaunchTiles>
void backward_pass(const AttentionArgs& args, const GradientArgs& gradients, cudaStream_t stream,
                   LaunchTiles launch_tiles) {
  const int row_blocks = (args.tokens_q + Shape::kTileM - 1) / Shape::kTileM;
  const int key_blocks = (args.tokens_k + Shape::kTileN - 1) / Shape::kTileN;
  const auto clear = [&](float* sums, std::int64_t rows) {
    LONGCA_CUDA(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(rows) * Shape::kDim * 4, stream));
  };
  const int padded_rows = row_blocks * Shape::kTileM;
  if (row_blocks > 0) {
    clear(gradients.dq_sum, std::int64_t{args.heads_q} * padded_rows);
    const int row_groups = padded_rows * (Shape::kDim / 8) / kRowThreads;
    row_terms_kernel<Shape>
        <<<dim3(row_groups, args.heads_q), kRowThreads, 0, stream>>>(args, gradients, padded_rows);
    LONGCA_CUDA(cudaGetLastError());
  }
  if (key_blocks > 0) {
    const bool sums = gradients.head_parts > 1;
    const std::int64_t rows = std::int64_t{args.heads_k} * key_blocks * Shape::kTileN;
    if (sums) clear(gradients.dk_sum, rows);
    if (sums) clear(gradients.dv_sum, rows);
    launch_tiles();
    using Dk = typename Shape::DkFragments;
    if (sums) {
      convert_sums<Dk, Shape>(gradients.dk_sum, args.scale, gradients.dk, args.tokens_k,
                              args.heads_k, gradients.accumulate, stream);
      convert_sums<Dk, Shape>(gradients.dv_sum, 1, gradients.dv, args.tokens_k, args.heads_k,
                              gradients.accumulate, stream);
    }
  }
  if (row_blocks > 0) {
    convert_sums<typename Shape::DqFragments, Shape>(gradients.dq_sum, args.scale, gradients.dq,
                                                     args.tokens_q, args.heads_q,
                                                     gradients.accumulate, stream);
  }
}

}  // namespace longca::mma
