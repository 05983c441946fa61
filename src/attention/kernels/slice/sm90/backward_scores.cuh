#pragma once

#include <cstdint>

#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/sm90/backward_prepost.cuh"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

namespace longca::slice::sm90 {

/// Descriptor offset, in units of 16 bytes, of step i of 16 along the inner dimension: along a row
/// of 128 bytes, then in the next column of 64 elements; or 16 rows further down.
template <int kColumnBytes>
__device__ __forceinline__ constexpr std::uint64_t k_major_step(int i) {
  return static_cast<std::uint64_t>((i / 4 * kColumnBytes + i % 4 * 32) / 16);
}
__device__ __forceinline__ constexpr std::uint64_t mn_major_step(int i) {
  return static_cast<std::uint64_t>(i * 16 * 128 / 16);
}

/// A warp's 16 keys of a tile of scores, 64 rows, transposed, keys × rows: Sᵀ = K Qᵀ, Pᵀ, dPᵀ = V
/// dOᵀ, dSᵀ, so that Pᵀ and dSᵀ in registers are A operands. What the consumers of scores
/// do with them.
template <typename Shape>
struct BackwardScores {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;

  const BackwardKernelArgs& args;
  Shared& shared;
  int group;  ///< warpgroup 0 or 1
  int warp;   ///< of the four in the group
  int lane;

  /// The same warp and lane, in registers: the compiler would derive them from threadIdx at each
  /// use.
  __device__ __forceinline__ void keep_place() {
    warp = __shfl_sync(~0u, warp, 0);
    lane = __shfl_sync(~0u, lane, lane);
  }
  /// scale · log2 e in a register, likewise: not loaded and multiplied for each visit.
  __device__ __forceinline__ float scale_log2() const {
    return __shfl_sync(~0u, args.params.scale * kLog2E, 0);
  }

  /// The first key of the warpgroup's 64 in the key tile.
  __device__ __forceinline__ int group_key() const {
    return Shape::kKeys == kTileKeys ? group * 64 : 0;
  }

  /// For the warp: the caller orders the other lanes' accesses before, by __syncwarp or wgmma's
  /// wait.
  __device__ __forceinline__ void arrive(std::uint64_t& barrier) const {
    ptx::mbarrier_arrive_warp(&barrier, lane);
  }

  /// s = K Qᵀ or V dOᵀ over kInner dimensions: [64 keys of this warpgroup, 2 · kCount rows].
  /// Register i is of key lane / 4 + 8 (i / 2 % 2) of the warp's 16, row
  /// 8 (i / 4) + 2 (lane % 4) + i % 2.
  template <int kInner, int kCount>
  __device__ __forceinline__ void multiply_rows(float (&s)[kCount], const unsigned char* keys,
                                                const unsigned char* rows) const {
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(keys) + group_key() * 128, 0);
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), 0);
    using ptx::Major;
    ptx::wgmma_ss<T, Major::k, Major::k, false>(s, a, b);
#pragma unroll
    for (int step = 1; step < kInner / 16; ++step) {
      ptx::wgmma_ss<T, Major::k, Major::k, true>(s, a + k_major_step<Shape::kKeyColumnBytes>(step),
                                                 b + k_major_step<Shape::kRowColumnBytes>(step));
    }
  }

  /// Sets the probabilities of cells outside of the pattern, a word per key of the tile, to 0.
  __device__ __forceinline__ void mask(float (&p)[32], int stage = 0) const {
    const int key = group_key() + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t word = shared.pattern[stage][key + half * 8] >> (2 * (lane % 4));
      const auto low = static_cast<std::uint32_t>(word);
      const auto high = static_cast<std::uint32_t>(word >> 32);
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        if (i / 2 % 2 != half) continue;
        const int bit = i / 4 * 8 + i % 2;
        const bool allowed = ((bit < 32 ? low : high) >> (bit % 32) & 1) != 0;
        p[i] = allowed ? p[i] : 0.0f;
      }
    }
  }

  /// The same for packed probabilities.
  __device__ __forceinline__ void mask_packed(std::uint32_t (&p)[16], int stage) const {
    const int key = group_key() + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t word = shared.pattern[stage][key + half * 8] >> (2 * (lane % 4));
#pragma unroll
      for (int i = half; i < 16; i += 2) {
        const auto bits = static_cast<std::uint32_t>(word >> (i / 2 * 8));
        p[i] &= (bits & 1) * 0xFFFFu | (bits >> 1 & 1) * 0xFFFF0000u;
      }
    }
  }

  /// Loads LSE or delta of the rows that the thread's registers of scores are of. Beside wgmma a
  /// load from shared memory takes some 200 cycles: all at once, and ahead of their use where there
  /// are registers for it.
  __device__ __forceinline__ void load_terms(float2 (&terms)[8], const float* of_tile) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      terms[i] = *reinterpret_cast<const float2*>(of_tile + i * 8 + lane % 4 * 2);
    }
  }

  /// Turns s = Sᵀ into Pᵀ = exp2(Sᵀ · scale − LSE).
  __device__ __forceinline__ void exponentiate(float (&s)[32], float scale_log2,
                                               const float2 (&lse_log2)[8]) const {
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      const float2 of_rows = lse_log2[i / 4];
      s[i] = ptx::exp2(fmaf(s[i], scale_log2, -of_rows.x));
      s[i + 1] = ptx::exp2(fmaf(s[i + 1], scale_log2, -of_rows.y));
      s[i + 2] = ptx::exp2(fmaf(s[i + 2], scale_log2, -of_rows.x));
      s[i + 3] = ptx::exp2(fmaf(s[i + 3], scale_log2, -of_rows.y));
    }
  }

  /// Turns dp = dPᵀ into dSᵀ = Pᵀ ∘ (dPᵀ − delta).
  __device__ __forceinline__ void multiply_slopes(float (&dp)[32], const float (&p)[32],
                                                  const float* of_tile) const {
    const float* delta = of_tile + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      const float2 of_rows = *reinterpret_cast<const float2*>(delta + i * 2);
      dp[i] = p[i] * (dp[i] - of_rows.x);
      dp[i + 1] = p[i + 1] * (dp[i + 1] - of_rows.y);
      dp[i + 2] = p[i + 2] * (dp[i + 2] - of_rows.x);
      dp[i + 3] = p[i + 3] * (dp[i + 3] - of_rows.y);
    }
  }

  /// With a softcap: turns the raw products s into P · slope, which dS = P ∘ (dP − delta) · slope
  /// needs, and returns P packed in p; both are 0 outside of the pattern.
  __device__ __forceinline__ void capped_probabilities(float (&s)[32], std::uint32_t (&p)[16],
                                                       int stage, int pattern) const {
    const float* lse_log2 = shared.terms[stage][0] + lane % 4 * 2;
    const Softcap& cap = args.params.softcap;
    // ptxas orders a block by itself: of all 32 it takes each step before the next one, and spills.
#pragma unroll
    for (int first = 0; first < 32; first += kCapPart) {
      float squares[kCapPart];
      const float largest = square_products(s + first, squares);
      with_range(largest <= cap.brief.reach, largest <= cap.middle.reach, [&]<CapRange kRange>() {
#pragma unroll
        for (int i = 0; i < kCapPart; i += 2) {
          float* pair = s + first + i;
          const float2 of_rows = *reinterpret_cast<const float2*>(lse_log2 + (first + i) / 4 * 8);
          const ScoreAndSlope low =
              capped_score_and_slope<kRange>(pair[0], squares[i], cap, of_rows.x);
          const ScoreAndSlope high =
              capped_score_and_slope<kRange>(pair[1], squares[i + 1], cap, of_rows.y);
          const float p_low = ptx::exp2(low.score);
          const float p_high = ptx::exp2(high.score);
          p[(first + i) / 2] = ptx::pack<T>(p_low, p_high);
          pair[0] = p_low * low.slope;
          pair[1] = p_high * high.slope;
        }
      });
    }
    if (pattern < 0) return;
    const int pattern_stage = Shape::kPatternStages == 1 ? 0 : stage;
    mask(s, pattern_stage);
    mask_packed(p, pattern_stage);
  }

  /// Waits for dSᵀ of the query tile before, in the other stage, from both warpgroups, for wgmma
  /// that follows. While stage 0 is current, stage 1 is still in the phase before.
  __device__ __forceinline__ void wait_ds_before(const ptx::PipelineState<2>& ds_pipe) const {
    const std::uint32_t phase = ds_pipe.index == 1 ? ds_pipe.phase : ds_pipe.phase ^ 1;
    ptx::mbarrier_wait(&shared.ds_full[ds_pipe.index ^ 1], phase);
    // Orders the dSᵀ that score warps stored, and this thread has acquired, before its wgmma (async
    // proxy). One proxy fence on the way suffices: behind the stores it would delay the other
    // warpgroup, which waits for them.
    ptx::fence_proxy_async_shared();
  }

  /// The lane's byte offset for stmatrix or ldmatrix of the warp's 16 keys as an A operand, in a
  /// 128-byte swizzled column of 64 elements: of elements 0 to 15. XOR with step · 32 gives those
  /// from 16 · step on.
  __device__ __forceinline__ int operand_offset() const {
    const int row = lane % 8;
    const int key = group_key() + warp * 16 + (lane / 8 & 1) * 8 + row;
    return key * 128 + ((lane / 16) ^ row) * 16;
  }

  /// Stores this warp's 16 keys of dSᵀ, [128 keys, 64 rows], which both warpgroups read for dQ.
  __device__ __forceinline__ void store_ds(unsigned char* ds, const std::uint32_t (&a)[16]) const {
    const std::uint32_t first = ptx::shared_address(ds) + operand_offset();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::stmatrix_x4(first ^ (step * 32), a[step * 4], a[step * 4 + 1], a[step * 4 + 2],
                       a[step * 4 + 3]);
    }
  }
};

}  // namespace longca::slice::sm90
