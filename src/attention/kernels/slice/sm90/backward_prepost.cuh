#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "attention/kernels/common/logarithms.h"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/memory.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"
#include "core/rounding.h"

// The accumulators in device memory, and the small kernels before and after backward_kernel:
// preprocess_kernel computes RowTerms, postprocess_kernel rounds the accumulators.
namespace longca::slice::sm90 {

/// Threads of a CTA of preprocess_kernel and postprocess_kernel.
inline constexpr int kPrepostThreads = 256;

/// The accumulator of a query tile.
template <int kDim>
__device__ __forceinline__ float* dq_accum(const BackwardKernelArgs& args, std::int64_t index) {
  return args.dq_accum + index * (kBackwardRows * kDim);
}

/// The accumulator of dK (`which` = 0) or dV (1) of a split key tile.
template <typename Shape>
__device__ __forceinline__ float* dkv_accum(const BackwardKernelArgs& args, int split, int kv_head,
                                            int which) {
  const std::int64_t index =
      static_cast<std::int64_t>(kv_head) * args.params.lists.split_tiles + split;
  return args.dkv_accum + index * (Shape::kKeys * (Shape::kDim + Shape::kValueDim)) +
         which * (Shape::kKeys * Shape::kDim);
}

template <typename T>
__device__ __forceinline__ float dot(const uint4& a, const uint4& b) {
  const std::uint32_t* x = &a.x;
  const std::uint32_t* y = &b.x;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 u = ptx::unpack<T>(x[i]);
    const float2 v = ptx::unpack<T>(y[i]);
    sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
  }
  return sum;
}

/// Zeroes this CTA's share of dkv_accum and dkv_semaphores, the semaphores of its query tile and,
/// in the first CTA of a region, its visits; in the first CTA of the grid, the counters.
template <int kDqParts>
__device__ __forceinline__ void clear_accumulators(const BackwardKernelArgs& args) {
  auto* accum = reinterpret_cast<float4*>(args.dkv_accum);
  const std::int64_t count = args.dkv_accum_bytes / static_cast<std::int64_t>(sizeof(float4));
  for (std::int64_t i = blockIdx.x * kPrepostThreads + threadIdx.x; i < count;
       i += gridDim.x * kPrepostThreads) {
    accum[i] = make_float4(0, 0, 0, 0);
  }
  for (int i = blockIdx.x * kPrepostThreads + threadIdx.x; i < args.dkv_semaphore_count;
       i += gridDim.x * kPrepostThreads) {
    args.dkv_semaphores[i] = 0;
  }
  if (threadIdx.x < kDqParts) {
    args.dq_semaphores[blockIdx.x * kDqParts + threadIdx.x] = kDqEmpty;
  }
  if (threadIdx.x != 0) return;
  if (blockIdx.x % kRegionTiles == 0) args.visits[blockIdx.x / kRegionTiles] = 0;
  if (blockIdx.x == 0) *args.work_counter = *args.write_counter = 0;
}

/// Computes RowTerms, one query tile per CTA, kRowLanes threads per row, and clears what
/// backward_kernel adds to.
template <typename T, typename Shape>
__global__ void __launch_bounds__(kPrepostThreads)
    preprocess_kernel(const __grid_constant__ BackwardKernelArgs args) {
  constexpr int kLanes = Shape::kRowLanes;
  const BackwardParams& params = args.params;
  const int head_block = blockIdx.x / args.q_tiles;
  const int q_tile = blockIdx.x % args.q_tiles;
  RowTerms& terms = args.terms[blockIdx.x];
  ptx::griddepcontrol_wait();
  ptx::griddepcontrol_launch_dependents();
  clear_accumulators<Shape::kDqParts>(args);
  for (int row = threadIdx.x / kLanes; row < kBackwardRows; row += kPrepostThreads / kLanes) {
    const int head = (head_block << args.pack_shift) + (row & ((1 << args.pack_shift) - 1));
    const int token = (q_tile * kBackwardRows + row) >> args.pack_shift;
    const int column = threadIdx.x % kLanes * 8;
    float sum = 0;
    float lse = -INFINITY;
    if (token < params.tokens_q && column < args.value_dim) {
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
    terms.lse_log2[row] = sees_nothing ? INFINITY : lse * kLog2E;
    terms.delta[row] = sees_nothing ? 0 : sum;
  }
}

/// Copies a warp's part of an accumulator, kCount floats a lane, so 16 rows × 2 · kCount columns,
/// to a row-major tile in shared memory. Reads from L2 (__ldcg): L1 does not see what other SMs
/// added.
template <int kCount, int kPitch>
__device__ __forceinline__ void unpack_accumulator(const float* from, float (*tile)[kPitch],
                                                   int row, int column) {
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

/// Writes eight elements of a gradient's row; `element` is the offset of the first. No other thread
/// adds to them.
template <typename T>
__device__ __forceinline__ void write_eight(const TensorArg& tensor, std::int64_t element,
                                            const float* from, float scale, StoreMode mode) {
  if (mode != StoreMode::overwrite) {
    auto* to = reinterpret_cast<float4*>(static_cast<float*>(tensor.data) + element);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float4 sum = mode == StoreMode::add_float32 ? to[i] : make_float4(0, 0, 0, 0);
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

/// to += from · scale, eight elements. Reads past the L1 cache: the call before may have written
/// them, and this grid has not waited for its end.
template <typename T>
__device__ __forceinline__ void add_eight(T* to, const float* from, float scale) {
  uint4 values = __ldcg(reinterpret_cast<const uint4*>(to));
  const auto add = [&](std::uint32_t& word, int i) {
    const float2 held = ptx::unpack<T>(word);
    word = ptx::pack<T>(fmaf(from[i], scale, held.x), fmaf(from[i + 1], scale, held.y));
  };
  add(values.x, 0);
  add(values.y, 2);
  add(values.z, 4);
  add(values.w, 6);
  *reinterpret_cast<uint4*>(to) = values;
}

/// Rows of 64 that are written at a time, as many as shared memory has room for, and their
/// row-major tile, padded against bank conflicts.
template <typename Shape>
inline constexpr int kWrittenRows = Shape::kWide ? kBackwardRows / 2 : kBackwardRows;
template <typename Shape>
using RowMajorTile = float[kWrittenRows<Shape>][Shape::kDim + 4];

/// Copies dQ of 64 rows, or of half of them, from its accumulator to the tile: a part of 16 rows
/// per warp.
template <typename Shape>
__device__ __forceinline__ void unpack_dq(const float* accum, int half, RowMajorTile<Shape>& tile) {
  constexpr int kPitch = Shape::kDim + 4;
  const int warp = threadIdx.x / 32;
  if constexpr (!Shape::kWide) {
    constexpr int kColumns = Shape::kDqColumns;
    const float* part = accum + Shape::dq_begin(warp);
    if (kColumns == Shape::kLastDqColumns || warp < 4) {
      unpack_accumulator<kColumns / 2, kPitch>(part, tile, warp % 4 * 16, warp / 4 * kColumns);
    } else {
      unpack_accumulator<Shape::kLastDqColumns / 2, kPitch>(part, tile, warp % 4 * 16, kColumns);
    }
  } else {
    const int group = warp / 2 % 2;
    const int row = warp % 2 * 16;
    const float* part = accum + Shape::dq_begin(group * 4 + half * 2 + warp % 2);
    if (warp < 4) {
      unpack_accumulator<32, kPitch>(part, tile, row, group * 64);
    } else {
      unpack_accumulator<Shape::kMoreDqColumns / 2, kPitch>(part + 16 * 64, tile, row,
                                                            128 + group * Shape::kMoreDqColumns);
    }
  }
}

__device__ __forceinline__ bool is_held(const HeldRows& held, int token, int head) {
  return held.row_begin <= token && token < held.row_end && held.head_begin <= head &&
         head < held.head_end;
}

/// Writes dQ of query tile `index`, counted over all head blocks; zeros if no CTA came to it.
template <typename T, typename Shape>
__device__ __forceinline__ void write_dq(const BackwardKernelArgs& args, int index,
                                         RowMajorTile<Shape>& tile) {
  constexpr int kDim = Shape::kDim;
  constexpr int kRows = kWrittenRows<Shape>;
  const BackwardParams& params = args.params;
  const int head_block = index / args.q_tiles;
  const int q_tile = index % args.q_tiles;
  const bool touched =
      ptx::load_relaxed(args.dq_semaphores + std::int64_t{index} * Shape::kDqParts) != kDqEmpty;
  if (!touched && params.dq_mode == StoreMode::add_float32) return;
#pragma unroll 1
  for (int half = 0; half < kBackwardRows / kRows; ++half) {
    if (half > 0) __syncthreads();
    if (touched) {
      unpack_dq<Shape>(dq_accum<kDim>(args, index), half, tile);
    } else {
      for (int i = threadIdx.x; i < kRows * kDim; i += kPrepostThreads) {
        tile[i / kDim][i % kDim] = 0;
      }
    }
    __syncthreads();
    constexpr int kChunks = kDim / 8;
    for (int i = threadIdx.x; i < kRows * kChunks; i += kPrepostThreads) {
      const int row = half * kRows + i / kChunks;
      const int head = (head_block << args.pack_shift) + (row & ((1 << args.pack_shift) - 1));
      const int token = (q_tile * kBackwardRows + row) >> args.pack_shift;
      if (token >= params.tokens_q || i % kChunks * 8 >= args.dim) continue;
      const std::int64_t offset =
          token * params.dq.token_stride + head * params.dq.head_stride + i % kChunks * 8;
      const float* values = &tile[i / kChunks][i % kChunks * 8];
      if (is_held(params.held, token, head)) {
        add_eight<T>(static_cast<T*>(params.dq.data) + offset, values, params.scale);
      } else {
        write_eight<T>(params.dq, offset, values, params.scale, params.dq_mode);
      }
    }
  }
}

/// Writes dK (kWhich = 0) or dV (1) of a split key tile. dK has been scaled already.
template <typename T, typename Shape, int kWhich>
__device__ __forceinline__ void write_dkv(const BackwardKernelArgs& args, int split, int kv_head,
                                          RowMajorTile<Shape>& tile) {
  constexpr int kDim = kWhich == 0 ? Shape::kDim : Shape::kValueDim;
  constexpr int kKeys = kWrittenRows<Shape>;
  const BackwardParams& params = args.params;
  const KeyRange keys = params.lists.split_keys[split];
  const float* from = dkv_accum<Shape>(args, split, kv_head, kWhich);
  const TensorArg& tensor = kWhich == 0 ? params.dk : params.dv;
  const int dim = kWhich == 0 ? args.dim : args.value_dim;
  constexpr int kChunks = kDim / 8;
  const int warp = threadIdx.x / 32;
  for (int begin = 0; begin < Shape::kKeys; begin += kKeys) {
    // Two warps for each 16 keys, or four: each a part of the dimensions.
    constexpr int kParts = kPrepostThreads / 32 * 16 / kKeys;
    const int sixteen = warp % (kKeys / 16);
    const int part = warp / (kKeys / 16);
    unpack_accumulator<kDim / kParts / 2, Shape::kDim + 4>(
        from + (begin / 16 + sixteen) * (16 * kDim) + part * (16 * kDim / kParts), tile,
        sixteen * 16, part * (kDim / kParts));
    __syncthreads();
    for (int i = threadIdx.x; i < kKeys * kChunks; i += kPrepostThreads) {
      const int key = keys.begin + begin + i / kChunks;
      if (key >= keys.end || i % kChunks * 8 >= dim) continue;
      write_eight<T>(tensor,
                     key * tensor.token_stride + kv_head * tensor.head_stride + i % kChunks * 8,
                     &tile[i / kChunks][i % kChunks * 8], 1.0f, params.dkv_mode);
    }
    __syncthreads();
  }
}

/// CTAs of postprocess_kernel that fit on an SM, by their shared memory at 128 dimensions.
inline constexpr int kPostprocessCtasPerSm = 6;

/// The query tile to write as number `number`. Where visits are counted, waits until all additions
/// to its region are complete: load_acquire of the last count synchronizes with every
/// red_add_release before it (BackwardDqAccumulator), and __syncthreads passes this on to the CTA.
/// `visits` was cleared before this grid could start: backward_kernel lets it start only after it
/// has waited for preprocess_kernel. Cannot deadlock: this grid starts only once all CTAs of
/// backward_kernel are resident, so that spinning here takes no SM from one of them.
template <typename Shape>
__device__ __forceinline__ int finished_tile(const BackwardKernelArgs& args, int number) {
  const DeviceTransposedLists& lists = args.params.lists;
  if (!lists.counts_visits) return number;
  const int region = lists.region_order[number / kRegionTiles];
  if (threadIdx.x == 0) {
    while (ptx::load_acquire(args.visits + region) !=
           Shape::kDqParts * lists.region_visits[region]) {
      __nanosleep(100);
    }
  }
  __syncthreads();
  return region * kRegionTiles + number % kRegionTiles;
}

/// Rounds the float32 accumulators: dQ, then dK and dV of the split key tiles. Persistent. Where
/// visits are counted, CTAs take SMs on which backward_kernel has ended, and write the regions that
/// are complete while others still compute.
template <typename T, typename Shape>
__global__ void __launch_bounds__(kPrepostThreads)
    postprocess_kernel(const __grid_constant__ BackwardKernelArgs args) {
  __shared__ RowMajorTile<Shape> tile;
  __shared__ int next;
  const int split_tiles = args.params.lists.split_tiles;
  const int query_tiles = round_up(args.query_tiles, kRegionTiles);
  const int writes = query_tiles + args.dkv_accum_tiles * args.params.heads_k * 2;
  if (!args.params.lists.counts_visits) ptx::griddepcontrol_wait();
  int taken = threadIdx.x == 0 ? atomicAdd(args.write_counter, 1) : 0;
  for (;;) {
    if (threadIdx.x == 0) next = taken;
    __syncthreads();
    const int number = next;
    if (number >= writes) break;
    // The next one, early, which hides the latency of the atomic.
    if (threadIdx.x == 0) taken = atomicAdd(args.write_counter, 1);
    if (number < query_tiles) {
      const int index = finished_tile<Shape>(args, number);
      if (index < args.query_tiles) write_dq<T, Shape>(args, index, tile);
    } else {
      ptx::griddepcontrol_wait();
      const int rest = number - query_tiles;
      const int split = rest / 2 % split_tiles;
      const int kv_head = rest / 2 / split_tiles;
      rest % 2 == 0 ? write_dkv<T, Shape, 0>(args, split, kv_head, tile)
                    : write_dkv<T, Shape, 1>(args, split, kv_head, tile);
    }
    __syncthreads();
  }
  // So that what follows in the stream also follows backward_kernel (see launch_early).
  ptx::griddepcontrol_wait();
}

}  // namespace longca::slice::sm90
