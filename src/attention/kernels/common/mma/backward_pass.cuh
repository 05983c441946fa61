#pragma once

#include <cstddef>

#include "attention/kernels/common/mma/fragments.cuh"
#include "attention/kernels/common/mma/params.h"
#include "core/cuda/error.h"
#include "core/rounding.h"

namespace longca::mma {

inline constexpr int kRowThreads = 256;

/// Preprocess kernel: row_terms of every row, 8 columns per lane: lse · log2 e, or +∞ for padding
/// and rows without keys, whose probabilities become 0, and delta = Σ o · dout (T. Dao,
/// "FlashAttention-2", 2023).
template <typename Shape>
__global__ void __launch_bounds__(kRowThreads)
    row_terms_kernel(const AttentionArgs params, const GradientArgs gradients, int padded_rows) {
  using T = typename Shape::T;
  struct alignas(16) Chunk {
    T x[8];
  };
  constexpr int kLanes = Shape::kDim / 8;
  const int index = static_cast<int>(blockIdx.x * kRowThreads + threadIdx.x);
  const int row = index / kLanes;
  const int head = static_cast<int>(blockIdx.y);
  float delta = 0;
  if (row < params.tokens_q) {
    const auto o = head_rows<const T>(params.o, head, params.tokens_q);
    const auto dout = head_rows<const T>(gradients.dout, head, params.tokens_q);
    const int column = index % kLanes * 8;
    const auto a = *reinterpret_cast<const Chunk*>(o.data + row * o.token_stride + column);
    const auto b = *reinterpret_cast<const Chunk*>(dout.data + row * dout.token_stride + column);
#pragma unroll
    for (int i = 0; i < 8; ++i) delta += static_cast<float>(a.x[i]) * static_cast<float>(b.x[i]);
  }
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) delta += __shfl_xor_sync(~0U, delta, step);
  if (index % kLanes != 0) return;
  const float lse = row < params.tokens_q ? params.lse[head * params.lse_head_stride + row] : 0;
  const bool seen = row < params.tokens_q && lse != -INFINITY;
  const float2 terms = {seen ? lse * kLog2E : INFINITY, delta};
  reinterpret_cast<float2*>(
      gradients.row_terms)[static_cast<std::int64_t>(head) * padded_rows + row] = terms;
}

/// The rows [begin, end) of one head that a tile of sums holds.
struct TileRows {
  int begin, end;
};

/// Rows of a head of `to` = factor · tile `place` of the sums, or += in float32 if `accumulate`.
template <typename Parts, typename T, int kDim>
__device__ __forceinline__ void convert_tile(const float* sums, std::int64_t place, float factor,
                                             const TensorArg& to, int head, TileRows rows,
                                             bool accumulate) {
  __shared__ alignas(1024) T staged[Parts::kTileRows * kDim];
  if (accumulate) {
    Parts::add_to_rows(sums, place, factor, head_rows<float>(to, head, rows.end), rows.begin);
    return;
  }
  const SharedTile<kDim> tile{shared_address(staged)};
  Parts::template stage<T>(sums, place, factor, tile);
  __syncthreads();
  copy_rows<Parts::kTileRows, Parts::kThreads>(tile, head_rows<T>(to, head, rows.end), rows.begin,
                                               static_cast<int>(threadIdx.x));
}

/// Postprocess kernel: convert_tile by one CTA per (block of tokens, head).
template <typename Parts, typename T, int kDim>
__global__ void __launch_bounds__(Parts::kThreads)
    convert_sums_kernel(const float* sums, float factor, const TensorArg to, int tokens,
                        bool accumulate) {
  const int block = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  convert_tile<Parts, T, kDim>(sums, static_cast<std::int64_t>(head) * gridDim.x + block, factor,
                               to, head, {block * Parts::kTileRows, tokens}, accumulate);
}

/// to = factor · sums, which are in the layout of `Parts` (fragments.cuh), or += if `accumulate`.
template <typename Parts, typename Shape>
void convert_sums(const float* sums, float factor, const TensorArg& to, int tokens, int heads,
                  bool accumulate, cudaStream_t stream) {
  const int blocks = ceil_div(tokens, Parts::kTileRows);
  convert_sums_kernel<Parts, typename Shape::T, Shape::kDim>
      <<<dim3(blocks, heads), Parts::kThreads, 0, stream>>>(sums, factor, to, tokens, accumulate);
  LONGCA_CUDA(cudaGetLastError());
}

/// Launches a backward pass: clears the sums, preprocess kernel, `launch_tiles()`, postprocess
/// kernels. `launch_tiles` launches the kernel that accumulates dQ and stores dK and dV, or
/// accumulates them if head_parts > 1; it is skipped without keys.
template <typename Shape, typename LaunchTiles>
void backward_pass(const AttentionArgs& args, const GradientArgs& gradients, cudaStream_t stream,
                   LaunchTiles launch_tiles) {
  const int row_blocks = ceil_div(args.tokens_q, Shape::kTileM);
  const int key_blocks = ceil_div(args.tokens_k, Shape::kTileN);
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
