#pragma once

#include "attention/kernels/common/mma/fragments.cuh"
#include "attention/kernels/common/mma/params.h"
#include "attention/kernels/common/mma/softmax.cuh"

/// The two small kernels around the backward pass: row_terms_kernel computes lse and delta of each
/// query row, convert_sums_kernel turns float32 sums into a tensor.
namespace longca::mma {

inline constexpr int kRowThreads = 256;

/// row_terms of every row, 8 columns per lane: lse · log2 e, +∞ for rows without keys and padding
/// (so that their probabilities are 0); delta = Σ o · dout (T. Dao, "FlashAttention-2", 2023).
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

/// The rows of one head in a tile of sums.
struct TileRows {
  int begin, end;
};

/// Writes factor · tile number `place` of the sums to rows of a head of `to`; with `accumulate`,
/// adds it to rows of float32.
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

/// convert_tile by a CTA per block of the tokens and head.
template <typename Parts, typename T, int kDim>
__global__ void __launch_bounds__(Parts::kThreads)
    convert_sums_kernel(const float* sums, float factor, const TensorArg to, int tokens,
                        bool accumulate) {
  const int block = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y);
  convert_tile<Parts, T, kDim>(sums, static_cast<std::int64_t>(head) * gridDim.x + block, factor,
                               to, head, {block * Parts::kTileRows, tokens}, accumulate);
}

}  // namespace longca::mma
