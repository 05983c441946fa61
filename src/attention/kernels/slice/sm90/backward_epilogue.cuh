#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_prepost.cuh"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/memory.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

namespace longca::slice::sm90 {

/// Holds a warp's semaphore of a split key tile while the warp adds its share of dK or dV. If
/// ordered, waits at construction until the items before have added theirs, and releases at
/// destruction. All lanes construct it; `share`, in [0, kDkvSemaphores), is the same for all items
/// of a key tile. Cannot deadlock: waits only for items taken before this one, which wait for
/// earlier ones at most.
class DkvSemaphore {
 public:
  __device__ __forceinline__ DkvSemaphore(const BackwardKernelArgs& args, const KeyTileWork& work,
                                          int share)
      : ordered_(args.params.ordered != 0 && work.split >= 0),
        semaphore_(args.dkv_semaphores +
                   (std::int64_t{work.kv_head} * args.params.lists.split_tiles + work.split) *
                       kDkvSemaphores +
                   share) {
    ptx::wait_for(semaphore_, work.prior_parts, ordered_);
  }
  DkvSemaphore(const DkvSemaphore&) = delete;
  DkvSemaphore& operator=(const DkvSemaphore&) = delete;
  __device__ __forceinline__ ~DkvSemaphore() {
    __syncwarp();
    if (ordered_ && threadIdx.x % 32 == 0) ptx::red_add_release(semaphore_, 1);
  }

 private:
  bool ordered_;
  std::int32_t* semaphore_;
};

/// Writes dK and dV of a key tile from a warpgroup's accumulators, [64 keys, kDim] each: into the
/// gradients or, of a split key tile, into float32 accumulators in device memory.
template <typename Shape>
struct BackwardEpilogue {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;

  const BackwardKernelArgs& args;
  Shared& shared;
  int group;  ///< 0 or 1
  int warp;   ///< of the four in the group
  int lane;

  /// Whether dK and dV of `work` go through shared memory, over V.
  __device__ __forceinline__ bool uses_shared(const KeyTileWork& work) const {
    return work.split < 0 && args.params.dkv_mode == StoreMode::overwrite;
  }

  __device__ __forceinline__ void write(const KeyTileWork& work, float (&dk)[kDim / 2],
                                        float (&dv)[kDim / 2]) const {
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) dk[i] *= args.params.scale;
    if (work.q_tiles == 0 && args.params.dkv_mode == StoreMode::add_float32) return;
    if (work.split >= 0 && args.params.dkv_mode != StoreMode::add_float32) {
      if (work.q_tiles == 0) return;
      const DkvSemaphore semaphore(args, work, group * 4 + warp);
      add_to_accumulator(dk, dkv_accum<Shape>(args, work.split, work.kv_head, 0));
      add_to_accumulator(dv, dkv_accum<Shape>(args, work.split, work.kv_head, 1));
      return;
    }
    if (args.params.dkv_mode != StoreMode::overwrite) {
      const DkvSemaphore semaphore(args, work, group * 4 + warp);
      write_float32(dk, args.params.dk, work);
      write_float32(dv, args.params.dv, work);
      return;
    }
    // Once all its warps are here, no wgmma reads this warpgroup's rows of V any more. K would not
    // do: the other warpgroup may still read all of it, for dQ.
    group == 0 ? ptx::named_barrier_sync(BackwardBarrier::epilogue_wg1, 128)
               : ptx::named_barrier_sync(BackwardBarrier::epilogue_wg2, 128);
    write_16_bit<1>(dv, args.params.dv, work, 0);
    __syncwarp();
    write_16_bit<0>(dk, args.params.dk, work, 0);
  }

  /// Writes one of the two, dK (kWhich = 0) or dV (1), of the key tile whose keys were in `stage`.
  /// Nobody may still read this warpgroup's rows of K or V there, in which write_16_bit stages it.
  template <int kWhich>
  __device__ __forceinline__ void write_one(const KeyTileWork& work, int stage,
                                            float (&sum)[kDim / 2]) const {
    const StoreMode mode = args.params.dkv_mode;
    const TensorArg& tensor = kWhich == 0 ? args.params.dk : args.params.dv;
    if constexpr (kWhich == 0) {
#pragma unroll
      for (float& x : sum) x *= args.params.scale;
    }
    if (work.q_tiles == 0 && (mode == StoreMode::add_float32 || work.split >= 0)) return;
    if (mode == StoreMode::overwrite && work.split < 0) {
      write_16_bit<kWhich>(sum, tensor, work, stage);
      return;
    }
    const DkvSemaphore semaphore(args, work, (1 - kWhich) * 8 + group * 4 + warp);
    if (work.split >= 0 && mode != StoreMode::add_float32) {
      add_to_accumulator(sum, dkv_accum<Shape>(args, work.split, work.kv_head, kWhich));
    } else {
      write_float32(sum, tensor, work);
    }
  }

  /// Other CTAs add to the same accumulator: reductions, in the layout of dq_accum.
  __device__ __forceinline__ void add_to_accumulator(const float (&sum)[kDim / 2],
                                                     float* to) const {
    to += (group * 4 + warp) * (kDim / 2 * 32) + lane * 4;
#pragma unroll
    for (int i = 0; i < kDim / 2; i += 4) ptx::red_add_v4(to + i * 32, sum + i);
  }

  /// Overwrites a float32 tensor or adds to it, by reductions: reading it back would stall, as no
  /// registers are left to have several reads under way.
  __device__ __forceinline__ void write_float32(const float (&sum)[kDim / 2],
                                                const TensorArg& tensor,
                                                const KeyTileWork& work) const {
    const bool adds = args.params.dkv_mode == StoreMode::add_float32;
    const int first = work.k_begin + group * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t key = first + half * 8;
      if (key >= work.k_end) continue;
      float* row = static_cast<float*>(tensor.data) + key * tensor.token_stride +
                   work.kv_head * tensor.head_stride + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < kDim / 8; ++i) {
        if (i * 8 >= args.dim) continue;
        const float2 two = make_float2(sum[i * 4 + half * 2], sum[i * 4 + half * 2 + 1]);
        if (adds) {
          ptx::red_add_v2(row + i * 8, two.x, two.y);
        } else {
          *reinterpret_cast<float2*>(row + i * 8) = two;
        }
      }
    }
  }

  /// Stages the gradient in this warp's 16 rows of V in shared memory (if kNarrow, dK in those of
  /// K), so that whole rows are written. No other warp touches these: __syncwarp orders accesses.
  template <int kWhich>
  __device__ __forceinline__ void write_16_bit(const float (&sum)[kDim / 2],
                                               const TensorArg& tensor, const KeyTileWork& work,
                                               int stage) const {
    const int first = group * 64 + warp * 16;
    unsigned char* rows =
        (Shape::kNarrow && kWhich == 0 ? shared.k[stage] : shared.v[stage]) + first * 128;
    const int row = lane % 8;
    const std::uint32_t line = ptx::shared_address(rows) + (row + (lane / 8 & 1) * 8) * 128;
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int chunk = (step % 4 * 2 + lane / 16) ^ row;
      const float* d = sum + step * 8;
      ptx::stmatrix_x4(line + step / 4 * Shape::kKeyColumnBytes + chunk * 16,
                       ptx::pack<T>(d[0], d[1]), ptx::pack<T>(d[2], d[3]), ptx::pack<T>(d[4], d[5]),
                       ptx::pack<T>(d[6], d[7]));
    }
    __syncwarp();
    constexpr int kChunks = kDim / 8;
#pragma unroll
    for (int i = lane; i < 16 * kChunks; i += 32) {
      const int key_row = i / kChunks;
      const int chunk = i % kChunks;
      const int key = work.k_begin + first + key_row;
      if (key >= work.k_end || chunk * 8 >= args.dim) continue;
      const uint4 values =
          *reinterpret_cast<const uint4*>(rows + chunk / 8 * Shape::kKeyColumnBytes +
                                          key_row * 128 + ((chunk % 8) ^ (key_row % 8)) * 16);
      T* to = static_cast<T*>(tensor.data) + key * tensor.token_stride +
              work.kv_head * tensor.head_stride + chunk * 8;
      *reinterpret_cast<uint4*>(to) = values;
    }
  }
};

}  // namespace longca::slice::sm90
