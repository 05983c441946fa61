#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_args.h"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tile_products.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

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

/// Zeros for what is added to: a part of the sums of shared keys, this query tile's turn, and for
/// the first ones of a region and of all the counters.
__device__ __forceinline__ void clear_sums(const BackwardArgs& args) {
  auto* sums = reinterpret_cast<float4*>(args.key_sums);
  const std::int64_t count = args.key_sum_bytes / static_cast<std::int64_t>(sizeof(float4));
  for (std::int64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
    sums[i] = make_float4(0, 0, 0, 0);
  }
  if (threadIdx.x != 0) return;
  args.turns[blockIdx.x] = kUntouched;
  if (blockIdx.x % kRegionTiles == 0) args.visits[blockIdx.x / kRegionTiles] = 0;
  if (blockIdx.x == 0) *args.work_counter = *args.write_counter = 0;
}

/// RowTerms of one query tile per CTA of 256 threads, kDim / 8 threads a row.
template <typename T, int kDim>
__global__ void __launch_bounds__(256) row_terms_kernel(const __grid_constant__ BackwardArgs args) {
  constexpr int kLanes = kDim / 8;
  const BackwardParams& params = args.params;
  const int head_block = blockIdx.x / args.q_tiles;
  const int q_tile = blockIdx.x % args.q_tiles;
  RowTerms& terms = args.terms[blockIdx.x];
  ptx::wait_for_kernels_before();
  ptx::let_next_kernel_start();
  clear_sums(args);
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
    const float4 x = __ldcg(reinterpret_cast<const float4*>(from + i * 128 + lane * 4));
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

/// Rows of floats from the sums' order to that of a tensor.
template <int kDim>
using SumTile = float[kBackwardRows][kDim + 4];

/// dQ from its sums: query tile `index` of all head blocks.
template <typename T, int kDim>
__device__ __forceinline__ void write_dq(const BackwardArgs& args, int index, SumTile<kDim>& tile) {
  const BackwardParams& params = args.params;
  const int head_block = index / args.q_tiles;
  const int q_tile = index % args.q_tiles;
  const int warp = threadIdx.x / 32;
  const bool touched = ptx::load_relaxed(args.turns + index) != kUntouched;
  if (touched) {
    spread<kDim / 4, kDim + 4>(dq_sums<kDim>(args, index) + warp * (8 * kDim), tile, warp % 4 * 16,
                               warp / 4 * (kDim / 2));
  } else if (params.dq_sink == Sink::add_float32) {
    return;
  } else {
    for (int i = threadIdx.x; i < kBackwardRows * kDim; i += 256) tile[i / kDim][i % kDim] = 0;
  }
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

/// dK (`which` = 0) or dV (1) of shared key tile `shared` of a KV head.
template <typename T, int kDim>
__device__ __forceinline__ void write_keys(const BackwardArgs& args, int shared, int kv_head,
                                           int which, SumTile<kDim>& tile) {
  const BackwardParams& params = args.params;
  const KeyRange keys = params.lists.shared_keys[shared];
  const float* from = key_sums<kDim>(args, shared, kv_head, which);
  const TensorArg& tensor = which == 0 ? params.dk : params.dv;
  constexpr int kChunks = kDim / 8;
  const int warp = threadIdx.x / 32;
  for (int half = 0; half < 2; ++half) {
    // Two warps for each 16 keys, one per half of the dimensions.
    spread<kDim / 4, kDim + 4>(from + (half * 4 + warp % 4) * (16 * kDim) + warp / 4 * (8 * kDim),
                               tile, warp % 4 * 16, warp / 4 * (kDim / 2));
    __syncthreads();
    for (int i = threadIdx.x; i < kTileKeys / 2 * kChunks; i += 256) {
      const int key = keys.begin + half * 64 + i / kChunks;
      if (key >= keys.end) continue;
      write_eight<T>(tensor,
                     key * tensor.token_stride + kv_head * tensor.head_stride + i % kChunks * 8,
                     &tile[i / kChunks][i % kChunks * 8], 1.0f, params.keys_sink);
    }
    __syncthreads();
  }
}

/// As much as their shared memory lets run on a SM.
inline constexpr int kWritersPerSm = 6;

/// The query tile that is written as number `number`, when all that is added to it has been.
__device__ __forceinline__ int finished_tile(const BackwardArgs& args, int number) {
  const DeviceTransposedLists& lists = args.params.lists;
  if (!lists.counts_visits) return number;
  const int region = lists.region_order[number / kRegionTiles];
  if (threadIdx.x == 0) {
    while (ptx::load_acquire(args.visits + region) != lists.region_visits[region]) __nanosleep(100);
  }
  __syncthreads();
  return region * kRegionTiles + number % kRegionTiles;
}

/// Writes what was added up in float32: dQ query tile by query tile, then dK and dV of every shared
/// key tile of every KV head. Where visits are counted, its CTAs take the SMs
/// that the main kernel is done with, and write what is done while others still work.
template <typename T, int kDim>
__global__ void __launch_bounds__(256)
    write_sums_kernel(const __grid_constant__ BackwardArgs args) {
  __shared__ SumTile<kDim> tile;
  __shared__ int next;
  const int shared_tiles = args.params.lists.shared_tiles;
  const int query_tiles = (args.query_tiles + kRegionTiles - 1) / kRegionTiles * kRegionTiles;
  const int writes = query_tiles + args.shared_sums * args.params.heads_k * 2;
  if (!args.params.lists.counts_visits) ptx::wait_for_kernels_before();
  int taken = threadIdx.x == 0 ? atomicAdd(args.write_counter, 1) : 0;
  for (;;) {
    if (threadIdx.x == 0) next = taken;
    __syncthreads();
    const int number = next;
    if (number >= writes) break;
    // Asked for early: it is there when this tile is written.
    if (threadIdx.x == 0) taken = atomicAdd(args.write_counter, 1);
    if (number < query_tiles) {
      const int index = finished_tile(args, number);
      if (index < args.query_tiles) write_dq<T, kDim>(args, index, tile);
    } else {
      ptx::wait_for_kernels_before();
      const int sums = number - query_tiles;
      write_keys<T, kDim>(args, sums / 2 % shared_tiles, sums / 2 / shared_tiles, sums % 2, tile);
    }
    __syncthreads();
  }
  // What comes behind this kernel comes behind the main one too.
  ptx::wait_for_kernels_before();
}

}  // namespace longca::slice::sm90
