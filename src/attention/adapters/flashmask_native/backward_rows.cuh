#pragma once

#include "attention/adapters/flashmask_native/backward.cuh"

/// The two small kernels around the backward pass: one prepares what it needs of each query row,
/// the other turns float32 sums into a tensor.
namespace longca::flashmask {

/// row_terms of every row, a warp per row: lse · log2 e, +∞ for rows without keys and padding (so
/// that their probabilities are 0); delta = Σ o · dout (T. Dao, "FlashAttention-2", 2023).
template <typename Shape>
__global__ void __launch_bounds__(256)
    row_terms_kernel(const BackwardParams params, int padded_rows) {
  using T = typename Shape::T;
  const int row = static_cast<int>(blockIdx.x * 8 + threadIdx.x / 32);
  const int head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (row >= padded_rows) return;
  float lse = INFINITY;
  float delta = 0;
  if (row < params.tokens_q) {
    const auto o = head_rows<const T>(params.o, head, params.tokens_q);
    const auto dout = head_rows<const T>(params.dout, head, params.tokens_q);
#pragma unroll
    for (int i = 0; i < Shape::kDim / 64; ++i) {
      const int column = i * 64 + lane * 2;
      const T* x = o.data + row * o.token_stride + column;
      const T* y = dout.data + row * dout.token_stride + column;
      delta += static_cast<float>(x[0]) * static_cast<float>(y[0]) +
               static_cast<float>(x[1]) * static_cast<float>(y[1]);
    }
    const float given = params.lse[head * params.lse_head_stride + row];
    lse = given == -INFINITY ? INFINITY : given * kLog2E;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) delta += __shfl_xor_sync(~0U, delta, step);
  if (lane == 0) {
    float* terms = params.row_terms + (static_cast<std::int64_t>(head) * padded_rows + row) * 2;
    terms[0] = lse;
    terms[1] = delta;
  }
}

/// to = factor · sums, a work group per block of the tokens and head.
template <typename Parts, typename T, int kDim>
__global__ void __launch_bounds__(Parts::kThreads)
    convert_sums_kernel(const float* sums, float factor, const TensorArg to, int tokens) {
  __shared__ alignas(1024) T staged[Parts::kTileRows * kDim];
  const SharedTile<kDim> tile{shared_address(staged)};
  const int block = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  Parts::template stage<T>(sums, static_cast<std::int64_t>(head) * gridDim.x + block, factor, tile);
  __syncthreads();
  copy_rows<Parts::kTileRows, Parts::kThreads>(tile, head_rows<T>(to, head, tokens),
                                               block * Parts::kTileRows,
                                               static_cast<int>(threadIdx.x));
}

}  // namespace longca::flashmask
