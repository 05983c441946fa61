#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "attention/slice/sm90/backward_args.h"
#include "attention/slice/sm90/ptx/wgmma.cuh"

// What the backward pass keeps in device memory, and the small kernels before and after it.
namespace longca::slice::sm90 {

inline constexpr float kLog2E = 1.4426950408889634f;

template <int kDim>
__device__ __forceinline__ float* dq_sums(const BackwardArgs& args, std::int64_t index) {
  return args.dq_sums + index * (kBackwardRows * kDim);
}

template <int kDim>
__device__ __forceinline__ float* key_sums(const BackwardArgs& args, int shared, int kv_head,
                                           int which) {
  const std::int64_t index =
      (static_cast<std::int64_t>(kv_head) * args.params.lists.shared_tiles + shared) * 2 + which;
  return args.key_sums + index * (kTileKeys * kDim);
}

template <typename T>
__device__ __forceinline__ float2 unpack(std::uint32_t word) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&word));
  } else {
    return __half22float2(*reinterpret_cast<const __half2*>(&word));
  }
}

template <typename T>
__device__ __forceinline__ float dot(const uint4& a, const uint4& b) {
  const std::uint32_t* x = &a.x;
  const std::uint32_t* y = &b.x;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 u = unpack<T>(x[i]);
    const float2 v = unpack<T>(y[i]);
    sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
  }
  return sum;
}

/// RowTerms of one query tile per work group of 256 threads, kDim / 8 threads a row; and zeros for
/// the sums of its dQ.
template <typename T, int kDim>
__global__ void __launch_bounds__(256) row_terms_kernel(const __grid_constant__ BackwardArgs args) {
  constexpr int kLanes = kDim / 8;
  const BackwardParams& params = args.params;
  const int head_block = blockIdx.x / args.q_tiles;
  const int q_tile = blockIdx.x % args.q_tiles;
  RowTerms& terms = args.terms[blockIdx.x];
  auto* sums = reinterpret_cast<float4*>(dq_sums<kDim>(args, blockIdx.x));
#pragma unroll
  for (int i = 0; i < kBackwardRows * kDim / 4; i += 256) {
    sums[i + threadIdx.x] = make_float4(0, 0, 0, 0);
  }
  for (int row = threadIdx.x / kLanes; row < kBackwardRows; row += 256 / kLanes) {
    const int head = (head_block << args.pack_shift) + (row & ((1 << args.pack_shift) - 1));
    const int token = (q_tile * kBackwardRows + row) >> args.pack_shift;
    const int column = threadIdx.x % kLanes * 8;
    float sum = 0;
    float lse = -INFINITY;
    if (token < params.tokens_q) {
      const auto load = [&](const TensorArg& tensor) {
        return *reinterpret_cast<const uint4*>(static_cast<const T*>(tensor.data) +
                                               token * tensor.token_stride +
                                               head * tensor.head_stride + column);
      };
      sum = dot<T>(load(params.dout), load(params.o));
      lse = params.lse[head * params.lse_head_stride + token];
    }
#pragma unroll
    for (int i = kLanes / 2; i > 0; i /= 2) sum += __shfl_xor_sync(~0u, sum, i);
    if (column != 0) continue;
    const bool sees_nothing = lse == -INFINITY;
    terms.lse[row] = sees_nothing ? INFINITY : lse * kLog2E;
    terms.delta[row] = sees_nothing ? 0 : sum;
  }
}

/// 16 rows × `columns` numbers that one warp holds, as floats of a tile in shared memory.
template <int kCount, int kPitch>
__device__ __forceinline__ void spread(const float* from, float (*tile)[kPitch], int row,
                                       int column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i) {
    const float4 x = *reinterpret_cast<const float4*>(from + i * 128 + lane * 4);
    float* to = &tile[row + lane / 4][column + i * 8 + lane % 4 * 2];
    to[0] = x.x;
    to[1] = x.y;
    to[8 * kPitch] = x.z;
    to[8 * kPitch + 1] = x.w;
  }
}

/// Eight numbers of a gradient's row.
template <typename T>
__device__ __forceinline__ void write_eight(const TensorArg& tensor, std::int64_t element,
                                            const float* from, float scale, Sink sink) {
  if (sink != Sink::overwrite) {
    auto* to = reinterpret_cast<float4*>(static_cast<float*>(tensor.data) + element);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float4 sum = sink == Sink::add_float32 ? to[i] : make_float4(0, 0, 0, 0);
      sum.x = fmaf(from[4 * i], scale, sum.x);
      sum.y = fmaf(from[4 * i + 1], scale, sum.y);
      sum.z = fmaf(from[4 * i + 2], scale, sum.z);
      sum.w = fmaf(from[4 * i + 3], scale, sum.w);
      to[i] = sum;
    }
    return;
  }
  uint4 values;
  values.x = ptx::pack<T>(from[0] * scale, from[1] * scale);
  values.y = ptx::pack<T>(from[2] * scale, from[3] * scale);
  values.z = ptx::pack<T>(from[4] * scale, from[5] * scale);
  values.w = ptx::pack<T>(from[6] * scale, from[7] * scale);
  *reinterpret_cast<uint4*>(static_cast<T*>(tensor.data) + element) = values;
}

/// dQ from its sums: one query tile per work group of 256 threads.
template <typename T, int kDim>
__global__ void __launch_bounds__(256) write_dq_kernel(const __grid_constant__ BackwardArgs args) {
  constexpr int kPitch = kDim + 4;
  __shared__ float tile[kBackwardRows][kPitch];
  const BackwardParams& params = args.params;
  const int head_block = blockIdx.x / args.q_tiles;
  const int q_tile = blockIdx.x % args.q_tiles;
  const int warp = threadIdx.x / 32;
  spread<kDim / 4, kPitch>(dq_sums<kDim>(args, blockIdx.x) + warp * (8 * kDim), tile, warp % 4 * 16,
                           warp / 4 * (kDim / 2));
  __syncthreads();
  constexpr int kChunks = kDim / 8;
  for (int i = threadIdx.x; i < kBackwardRows * kChunks; i += 256) {
    const int row = i / kChunks;
    const int head = (head_block << args.pack_shift) + (row & ((1 << args.pack_shift) - 1));
    const int token = (q_tile * kBackwardRows + row) >> args.pack_shift;
    if (token >= params.tokens_q) continue;
    write_eight<T>(params.dq,
                   token * params.dq.token_stride + head * params.dq.head_stride + i % kChunks * 8,
                   &tile[row][i % kChunks * 8], params.scale, params.dq_sink);
  }
}

/// dK (blockIdx.z = 0) or dV (1) of a shared key tile (blockIdx.x) of a KV head (blockIdx.y).
template <typename T, int kDim>
__global__ void __launch_bounds__(256)
    write_keys_kernel(const __grid_constant__ BackwardArgs args) {
  constexpr int kPitch = kDim + 4;
  __shared__ float tile[kTileKeys / 2][kPitch];
  const BackwardParams& params = args.params;
  const KeyRange keys = params.lists.shared_keys[blockIdx.x];
  const float* from = key_sums<kDim>(args, blockIdx.x, blockIdx.y, blockIdx.z);
  const TensorArg& tensor = blockIdx.z == 0 ? params.dk : params.dv;
  constexpr int kChunks = kDim / 8;
  const int warp = threadIdx.x / 32;
  for (int half = 0; half < 2; ++half) {
    // Two warps for each 16 keys, one per half of the dimensions.
    spread<kDim / 4, kPitch>(from + (half * 4 + warp % 4) * (16 * kDim) + warp / 4 * (8 * kDim),
                             tile, warp % 4 * 16, warp / 4 * (kDim / 2));
    __syncthreads();
    for (int i = threadIdx.x; i < kTileKeys / 2 * kChunks; i += 256) {
      const int key = keys.begin + half * 64 + i / kChunks;
      if (key >= keys.end) continue;
      write_eight<T>(tensor,
                     key * tensor.token_stride + blockIdx.y * tensor.head_stride + i % kChunks * 8,
                     &tile[i / kChunks][i % kChunks * 8], 1.0f, params.keys_sink);
    }
    __syncthreads();
  }
}

}  // namespace longca::slice::sm90
