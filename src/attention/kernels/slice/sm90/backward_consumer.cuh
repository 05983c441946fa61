#pragma once

#include <cstdint>

#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/sm90/backward_epilogue.cuh"
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

/// A consumer warpgroup owns 64 of the 128 keys, and computes their dK and dV; of dQ, it computes
/// half of the dimensions over all 128 keys. Scores and what follows from them are transposed, keys
/// × rows: Sᵀ = K Qᵀ, Pᵀ, dPᵀ = V dOᵀ, dSᵀ, so that Pᵀ and dSᵀ in registers are A operands.
template <typename Shape>
struct BackwardConsumer {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kDqCount = kDim / 4;  ///< of the thread: dQ of [64, kDim / 2]

  const BackwardKernelArgs& args;
  Shared& shared;
  int group;  ///< 0 or 1
  int warp;   ///< of the four in the group
  int lane;
  ptx::PipelineState<Shape::kStages> pipe{};
  ptx::PipelineState<2> ds_pipe{};
  ptx::PipelineState<Shape::kDqBuffers> dq_pipe{};
  std::uint32_t keys_phase = 0;

  /// For the warp: the caller orders the other lanes' accesses before, by __syncwarp or wgmma's
  /// wait.
  __device__ __forceinline__ void arrive(std::uint64_t& barrier) const {
    if (lane == 0) ptx::mbarrier_arrive(&barrier);
  }

  /// s = K Qᵀ or V dOᵀ: [64 keys of this warpgroup, 64 rows]. Register i is of key
  /// lane / 4 + 8 (i / 2 % 2) of the warp's 16, row 8 (i / 4) + 2 (lane % 4) + i % 2.
  __device__ __forceinline__ void multiply_rows(float (&s)[32], const unsigned char* keys,
                                                const unsigned char* rows) const {
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(keys) + group * 64 * 128, 0);
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), 0);
    using ptx::Major;
    ptx::wgmma_ss<T, Major::k, Major::k, false>(s, a, b);
#pragma unroll
    for (int step = 1; step < kDim / 16; ++step) {
      ptx::wgmma_ss<T, Major::k, Major::k, true>(s, a + k_major_step<Shape::kKeyColumnBytes>(step),
                                                 b + k_major_step<Shape::kRowColumnBytes>(step));
    }
  }

  /// sum += a · rows: dV += Pᵀ dO or dK += dSᵀ Q, with a [64 keys, 64 rows] in registers.
  __device__ __forceinline__ void add_product(float (&sum)[kDim / 2], const std::uint32_t (&a)[16],
                                              const unsigned char* rows) const {
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), Shape::kRowColumnBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_rs_add<T>(sum, a + step * 4, b + mn_major_step(step));
    }
  }

  /// dq = dS K: [64 rows, this warpgroup's half of the dimensions], over all 128 keys. `ds` is dSᵀ,
  /// an MN-major A.
  __device__ __forceinline__ void multiply_dq(float (&dq)[kDqCount],
                                              const unsigned char* ds) const {
    using ptx::Major;
    const int column = group * (kDim / 2);
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds), 0);
    const std::uint64_t b = ptx::smem_descriptor(
        ptx::shared_address(shared.k) + column / 64 * Shape::kKeyColumnBytes + column % 64 * 2,
        Shape::kKeyColumnBytes);
    ptx::wgmma_ss<T, Major::mn, Major::mn, false>(dq, a, b);
#pragma unroll
    for (int step = 1; step < kTileKeys / 16; ++step) {
      ptx::wgmma_ss<T, Major::mn, Major::mn, true>(dq, a + mn_major_step(step),
                                                   b + mn_major_step(step));
    }
  }

  /// Sets the probabilities of cells outside of the pattern to 0.
  __device__ __forceinline__ void mask(float (&p)[32]) const {
    const int key = group * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t word = shared.pattern[key + half * 8] >> (2 * (lane % 4));
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

  /// With a softcap: turns the raw products s into P · slope, which dS = P ∘ (dP − delta) · slope
  /// needs, and returns P packed in p; both are 0 outside of the pattern.
  template <CapRange kRange>
  __device__ __forceinline__ void capped_probabilities(float (&s)[32], std::uint32_t (&p)[16],
                                                       const float* lse_log2, int pattern) const {
    const int key = group * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t word =
          pattern >= 0 ? shared.pattern[key + half * 8] >> (2 * (lane % 4)) : ~std::uint64_t{0};
#pragma unroll
      for (int i = 2 * half; i < 32; i += 4) {
        const float2 of_rows = *reinterpret_cast<const float2*>(lse_log2 + (i - 2 * half) * 2);
        const Softcap& cap = args.params.softcap;
        const Tanh low = tanh_of<kRange>(s[i], cap);
        const Tanh high = tanh_of<kRange>(s[i + 1], cap);
        const int bit = i / 4 * 8;
        float p_low = ptx::exp2(fmaf(low.value, cap.cap_log2, -of_rows.x));
        float p_high = ptx::exp2(fmaf(high.value, cap.cap_log2, -of_rows.y));
        if ((word >> bit & 1) == 0) p_low = 0;
        if ((word >> (bit + 1) & 1) == 0) p_high = 0;
        p[i / 2] = ptx::pack<T>(p_low, p_high);
        s[i] = p_low * low.slope;
        s[i + 1] = p_high * high.slope;
      }
    }
  }

  /// Stores this warp's 16 keys of dSᵀ, [128 keys, 64 rows], which both warpgroups read for dQ.
  __device__ __forceinline__ void store_ds(unsigned char* ds, const std::uint32_t (&a)[16]) const {
    const int row = lane % 8;
    const int key = group * 64 + warp * 16 + (lane / 8 & 1) * 8 + row;
    const std::uint32_t first = ptx::shared_address(ds) + key * 128 + ((lane / 16) ^ row) * 16;
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::stmatrix_x4(first ^ (step * 32), a[step * 4], a[step * 4 + 1], a[step * 4 + 2],
                       a[step * 4 + 3]);
    }
  }

  /// Hands dQ to a BackwardDqAccumulator through shared memory, in the layout of dq_accum.
  __device__ __forceinline__ void add_dq(const float (&dq)[kDqCount], const RowTile& tile) {
    ptx::mbarrier_wait(&shared.dq_empty[dq_pipe.index], dq_pipe.phase ^ 1);
    float* staged = shared.dq[dq_pipe.index][group * 4 + warp];
#pragma unroll
    for (int i = 0; i < kDqCount; i += 4) {
      *reinterpret_cast<float4*>(staged + i * 32 + lane * 4) =
          make_float4(dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
    }
    ptx::fence_proxy_async_shared();
    signal_dq_full(tile);
  }

  __device__ __forceinline__ void signal_dq_full(const RowTile& tile) {
    if (group == 0 && warp == 0 && lane == 0) shared.dq_tile[dq_pipe.index] = tile;
    __syncwarp();
    arrive(shared.dq_full[dq_pipe.index]);
    dq_pipe.advance();
  }
  __device__ __forceinline__ void stop_dq_warps() {
    for (int i = 0; i < Shape::kDqBuffers; ++i) {
      ptx::mbarrier_wait(&shared.dq_empty[dq_pipe.index], dq_pipe.phase ^ 1);
      signal_dq_full({-1, 0, 0});
    }
  }

  __device__ __forceinline__ void run() {
    const BackwardEpilogue<Shape> epilogue{args, shared, group, warp, lane};
    for (;;) {
      ptx::mbarrier_wait(&shared.keys_full, keys_phase);
      keys_phase ^= 1;
      const KeyTileWork work = shared.work;
      if (work.q_tiles < 0) break;
      float dk[kDim / 2];
      float dv[kDim / 2];
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) dk[i] = dv[i] = 0;
      if (work.q_tiles > 0) walk(work.q_tiles, dk, dv);
      epilogue.write(work, dk, dv);
      // Orders the epilogue's accesses to shared.v before the TMA load of the next V (async proxy).
      if (epilogue.uses_shared(work)) ptx::fence_proxy_async_shared();
      __syncwarp();
      arrive(shared.keys_empty);
    }
    stop_dq_warps();
  }

  /// Waits for dSᵀ of the query tile before, in the other stage, from both warpgroups. While stage
  /// 0 is current, stage 1 is still in the phase before.
  __device__ __forceinline__ void wait_ds_before() {
    const std::uint32_t phase = ds_pipe.index == 1 ? ds_pipe.phase : ds_pipe.phase ^ 1;
    ptx::mbarrier_wait(&shared.ds_full[ds_pipe.index ^ 1], phase);
  }
  /// dQ of the query tile before: its wgmma has read dSᵀ.
  __device__ __forceinline__ void add_dq_before(const float (&dq)[kDqCount], const RowTile& tile) {
    arrive(shared.ds_empty[ds_pipe.index ^ 1]);
    add_dq(dq, tile);
  }

  /// Adds `count` ≥ 1 query tiles to dK and dV. Software pipeline over tiles i: dPᵀ(i) runs beside
  /// the exponentials, dV(i) beside dSᵀ(i), and dK(i), Sᵀ(i + 1) and dQ(i − 1) are issued in that
  /// order.
  __device__ __forceinline__ void walk(int count, float (&dk)[kDim / 2], float (&dv)[kDim / 2]) {
    // At 128 dimensions dK and dV take 128 of a thread's 240 registers, s and dp or dq 64.
    const float scale_log2 = args.params.scale * kLog2E;
    float s[32];
    ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
    ptx::warpgroup_arrive();
    multiply_rows(s, shared.k, shared.q[pipe.index]);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(s);
    RowTile before{-1, 0, 0};
    for (int left = count; left > 0; --left) {
      const int stage = pipe.index;
      const RowTile tile = shared.tile[stage];
      const float* lse_log2 = shared.terms[stage][0] + lane % 4 * 2;
      const float* delta = shared.terms[stage][1] + lane % 4 * 2;

      // s holds Sᵀ. Pᵀ = exp2(Sᵀ · scale − LSE) beside dPᵀ = V dOᵀ.
      float dp[32];
      ptx::mbarrier_wait(&shared.dout_full[stage], pipe.phase);
      ptx::warpgroup_arrive();
      multiply_rows(dp, shared.v, shared.dout[stage]);
      ptx::warpgroup_commit_group();
      std::uint32_t p[16];
      if constexpr (Shape::kCapped) {
        with_range(cap_range<32>(s, args.params.softcap), [&]<CapRange kRange>() {
          capped_probabilities<kRange>(s, p, lse_log2, tile.pattern);
        });
      } else {
#pragma unroll
        for (int i = 0; i < 32; i += 4) {
          const float2 of_rows = *reinterpret_cast<const float2*>(lse_log2 + i * 2);
          s[i] = ptx::exp2(fmaf(s[i], scale_log2, -of_rows.x));
          s[i + 1] = ptx::exp2(fmaf(s[i + 1], scale_log2, -of_rows.y));
          s[i + 2] = ptx::exp2(fmaf(s[i + 2], scale_log2, -of_rows.x));
          s[i + 3] = ptx::exp2(fmaf(s[i + 3], scale_log2, -of_rows.y));
        }
        if (tile.pattern >= 0) mask(s);
#pragma unroll
        for (int i = 0; i < 16; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
      }
      if (tile.pattern >= 0) {
        __syncwarp();
        arrive(shared.pattern_empty);
      }

      // dSᵀ = Pᵀ ∘ (dPᵀ − delta) beside dV += Pᵀ dO.
      ptx::warpgroup_arrive();
      add_product(dv, p, shared.dout[stage]);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(dp);
#pragma unroll
      for (int i = 0; i < 32; i += 4) {
        const float2 of_rows = *reinterpret_cast<const float2*>(delta + i * 2);
        dp[i] = s[i] * (dp[i] - of_rows.x);
        dp[i + 1] = s[i + 1] * (dp[i + 1] - of_rows.y);
        dp[i + 2] = s[i + 2] * (dp[i + 2] - of_rows.x);
        dp[i + 3] = s[i + 3] * (dp[i + 3] - of_rows.y);
      }
      std::uint32_t ds[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) ds[i] = ptx::pack<T>(dp[2 * i], dp[2 * i + 1]);
      ptx::mbarrier_wait(&shared.ds_empty[ds_pipe.index], ds_pipe.phase ^ 1);
      store_ds(shared.ds[ds_pipe.index], ds);
      ptx::fence_proxy_async_shared();  // wgmma of both warpgroups reads it
      __syncwarp();
      arrive(shared.ds_full[ds_pipe.index]);

      ptx::warpgroup_arrive();
      add_product(dk, ds, shared.q[stage]);
      ptx::warpgroup_commit_group();
      pipe.advance();
      // After the last tile this reads a stage that TMA may be writing, and the result is unused:
      // cheaper than a branch, across which the compiler would not keep wgmma in flight.
      if (left > 1) ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
      ptx::warpgroup_arrive();
      multiply_rows(s, shared.k, shared.q[pipe.index]);
      ptx::warpgroup_commit_group();
      // All but Sᵀ of the next tile is complete: dV and dK have read dO and Q. Row terms and `tile`
      // were read before __syncwarp.
      ptx::warpgroup_wait_group<1>();
      arrive(shared.dout_empty[stage]);
      arrive(shared.q_empty[stage]);

      // dQ of the tile before, whose dSᵀ the other warpgroup has mostly written by now. At the
      // first tile this reads a stage that the other warpgroup may be writing, and the result is
      // unused.
      float dq[kDqCount];
      if (before.index >= 0) wait_ds_before();
      ptx::warpgroup_arrive();
      multiply_dq(dq, shared.ds[ds_pipe.index ^ 1]);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(s);
      ptx::warpgroup_fence_operand(dq);
      if (before.index >= 0) add_dq_before(dq, before);
      before = tile;
      ds_pipe.advance();
    }
    float dq[kDqCount];
    wait_ds_before();
    ptx::warpgroup_arrive();
    multiply_dq(dq, shared.ds[ds_pipe.index ^ 1]);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(dq);
    add_dq_before(dq, before);
    ptx::warpgroup_fence_operand(dk);
    ptx::warpgroup_fence_operand(dv);
  }
};

}  // namespace longca::slice::sm90
