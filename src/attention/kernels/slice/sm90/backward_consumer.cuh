#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_epilogue.cuh"
#include "attention/kernels/slice/sm90/backward_scores.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

namespace longca::slice::sm90 {

/// The consumer for 96 and 128 dimensions. A warpgroup owns 64 of the 128 keys, and computes their
/// dK and dV; of dQ, it computes 64 columns over all 128 keys, the second one of 96 dimensions half
/// of them over zeros.
template <typename Shape>
struct BackwardConsumer : BackwardScores<Shape> {
  using T = typename Shape::T;
  using Base = BackwardScores<Shape>;
  using Base::args, Base::shared, Base::group, Base::warp, Base::lane, Base::arrive;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kDqCount = Shape::kDqColumns / 2;  ///< of the thread

  ptx::PipelineState<Shape::kStages> pipe{};
  ptx::PipelineState<2> ds_pipe{};
  ptx::PipelineState<Shape::kDqBuffers> dq_pipe{};
  /// If kHalves, in place of dq_pipe's phase, bit b is that of buffer b: tiles of one half all go
  /// through the buffer of its warpgroup.
  std::uint32_t dq_phases = 0;
  std::uint32_t keys_phase = 0;

  /// sum += a · rows: dV += Pᵀ dO or dK += dSᵀ Q, with a [64 keys, 64 rows] in registers.
  __device__ __forceinline__ void add_product(float (&sum)[kDim / 2], const std::uint32_t (&a)[16],
                                              const unsigned char* rows) const {
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), Shape::kRowColumnBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_rs_add<T>(sum, a + step * 4, b + mn_major_step(step));
    }
  }

  /// dq = dS K: [64 rows, this warpgroup's kDqColumns], over all 128 keys. `ds` is dSᵀ, an MN-major
  /// A.
  __device__ __forceinline__ void multiply_dq(float (&dq)[kDqCount], const unsigned char* ds,
                                              const unsigned char* keys) const {
    using ptx::Major;
    static_assert(Shape::kDqColumns == 64);
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds), 0);
    const int column = group * Shape::kDqColumns;
    const std::uint64_t b = ptx::smem_descriptor(
        ptx::shared_address(keys) + column / 64 * Shape::kKeyColumnBytes + column % 64 * 2,
        Shape::kKeyColumnBytes);
    ptx::wgmma_ss<T, Major::mn, Major::mn, false>(dq, a, b);
#pragma unroll
    for (int step = 1; step < kTileKeys / 16; ++step) {
      ptx::wgmma_ss<T, Major::mn, Major::mn, true>(dq, a + mn_major_step(step),
                                                   b + mn_major_step(step));
    }
  }

  /// Hands dQ to a BackwardDqAccumulator through shared memory, in the layout of dq_accum.
  __device__ __forceinline__ void add_dq(const float (&dq)[kDqCount], const RowTile& tile) {
    wait_dq_empty(dq_pipe.index);
    stage_dq(dq, dq_pipe.index, group);
    signal_dq_full(tile);
  }

  /// Stores dQ of a part's columns in a buffer.
  __device__ __forceinline__ void stage_dq(const float (&dq)[kDqCount], int buffer,
                                           int part) const {
    float* staged = Shape::dq_of_warp(shared, buffer, part * 4 + warp);
#pragma unroll
    for (int i = 0; i < kDqCount; i += 4) {
      if (part == 1 && i >= Shape::kLastDqColumns / 2) break;
      *reinterpret_cast<float4*>(staged + i * 32 + lane * 4) =
          make_float4(dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
    }
  }

  __device__ __forceinline__ void signal_dq_full(const RowTile& tile) {
    if (group == 0 && warp == 0 && lane == 0) shared.dq_tile[dq_pipe.index] = tile;
    __syncwarp();
    arrive(shared.dq_full[dq_pipe.index]);
    if constexpr (Shape::kHalves) dq_phases ^= 1U << dq_pipe.index;
    dq_pipe.advance();
  }
  __device__ __forceinline__ void wait_dq_empty(int buffer) const {
    const std::uint32_t phase = Shape::kHalves ? dq_phases >> buffer & 1 : dq_pipe.phase;
    ptx::mbarrier_wait(&shared.dq_empty[buffer], phase ^ 1);
  }
  __device__ __forceinline__ void stop_dq_warps() {
    for (int i = 0; i < Shape::kDqBuffers; ++i) {
      wait_dq_empty(dq_pipe.index);
      signal_dq_full({-1, 0, 0});
    }
  }

  __device__ __forceinline__ void run() {
    if constexpr (Shape::kHalves) this->keep_place();
    const BackwardEpilogue<Shape> epilogue{args, shared, group, warp, lane};
    for (;;) {
      ptx::mbarrier_wait(&shared.keys_full[0], keys_phase);
      keys_phase ^= 1;
      const KeyTileWork work = shared.work[0];
      if (work.q_tiles < 0) break;
      float dk[kDim / 2];
      float dv[kDim / 2];
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) dk[i] = dv[i] = 0;
      const auto write = [&](const KeyTileWork& done) {
        epilogue.write(done, dk, dv);
        // Orders the epilogue's accesses to shared.v before the TMA load of the next V (async
        // proxy).
        if (epilogue.uses_shared(done)) ptx::fence_proxy_async_shared();
      };
      if constexpr (Shape::kHalves) {
        for (int left = work.q_tiles; left > 0;) {
          left = walk_halves(left, dk, dv);
          if (left > 0) left = walk(left, dk, dv);
        }
        // Read again: through the loops it would take registers.
        const KeyTileWork done = shared.work[0];
        write(done);
      } else {
        if (work.q_tiles > 0) walk(work.q_tiles, dk, dv);
        write(work);
      }
      __syncwarp();
      arrive(shared.keys_empty[0]);
    }
    stop_dq_warps();
  }

  /// dQ of the query tile before: its wgmma has read dSᵀ.
  __device__ __forceinline__ void add_dq_before(const float (&dq)[kDqCount], const RowTile& tile) {
    arrive(shared.ds_empty[ds_pipe.index ^ 1]);
    add_dq(dq, tile);
  }

  /// Adds `count` ≥ 1 query tiles to dK and dV, or those before one that sees but one half of the
  /// keys; returns how many are left. Software pipeline over tiles i: dPᵀ(i) runs beside the
  /// exponentials, dV(i) beside dSᵀ(i), and dK(i), Sᵀ(i + 1) and dQ(i − 1) are issued in that
  /// order.
  __device__ __forceinline__ int walk(int count, float (&dk)[kDim / 2], float (&dv)[kDim / 2]) {
    // At 128 dimensions dK and dV take 128 of a thread's 240 registers, s and dp or dq 64.
    if constexpr (!Shape::kHalves) this->keep_place();
    const int from = descriptor_base();
    const float scale_log2 = this->scale_log2();
    float s[32];
    ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
    ptx::warpgroup_arrive();
    this->template multiply_rows<kDim>(s, shared.k[0] + from, shared.q[pipe.index] + from);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(s);
    RowTile before{-1, 0, 0};
    int left = count;
    std::int32_t next_pattern = kFull;
    for (; left > 0 && (!Shape::kHalves || uniform(seen_halves(next_pattern)) == 3); --left) {
      const int stage = pipe.index;
      const RowTile tile = shared.tile[stage];
      // s holds Sᵀ. Pᵀ = exp2(Sᵀ · scale − LSE) beside dPᵀ = V dOᵀ.
      float2 lse_log2[8];
      if constexpr (!Shape::kCapped) this->load_terms(lse_log2, shared.terms[stage][0]);
      float dp[32];
      ptx::warpgroup_arrive();
      this->template multiply_rows<kDim>(dp, shared.v[0] + from, shared.dout[stage] + from);
      ptx::warpgroup_commit_group();
      std::uint32_t p[16];
      if constexpr (Shape::kCapped) {
        this->capped_probabilities(s, p, stage, tile.pattern);
      } else {
        this->exponentiate(s, scale_log2, lse_log2);
        if (tile.pattern >= 0) this->mask(s);
#pragma unroll
        for (int i = 0; i < 16; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
      }
      if (tile.pattern >= 0) {
        __syncwarp();
        arrive(shared.pattern_empty);
      }

      // dSᵀ = Pᵀ ∘ (dPᵀ − delta) beside dV += Pᵀ dO.
      ptx::warpgroup_arrive();
      add_product(dv, p, shared.dout[stage] + from);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(dp);
      this->multiply_slopes(dp, s, shared.terms[stage][1]);
      std::uint32_t ds[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) ds[i] = ptx::pack<T>(dp[2 * i], dp[2 * i + 1]);
      ptx::mbarrier_wait(&shared.ds_empty[ds_pipe.index], ds_pipe.phase ^ 1);
      this->store_ds(shared.ds[ds_pipe.index], ds);  // fenced by its readers
      __syncwarp();
      arrive(shared.ds_full[ds_pipe.index]);

      ptx::warpgroup_arrive();
      add_product(dk, ds, shared.q[stage] + from);
      ptx::warpgroup_commit_group();
      pipe.advance();
      // After the last tile this reads a stage that TMA may be writing, and the result is unused:
      // cheaper than a branch, across which the compiler would not keep wgmma in flight.
      if (left > 1) ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
      ptx::warpgroup_arrive();
      this->template multiply_rows<kDim>(s, shared.k[0] + from, shared.q[pipe.index] + from);
      ptx::warpgroup_commit_group();
      if constexpr (Shape::kHalves) {
        if (left > 1) next_pattern = shared.tile[pipe.index].pattern;
      }
      // All but Sᵀ of the next tile is complete: dV and dK have read dO and Q. Row terms and `tile`
      // were read before __syncwarp.
      ptx::warpgroup_wait_group<1>();
      arrive(shared.q_empty[stage]);

      // dQ of the tile before, whose dSᵀ the other warpgroup has mostly written by now. At the
      // first tile this reads a stage that the other warpgroup may be writing, and the result is
      // unused.
      float dq[kDqCount];
      if (before.index >= 0) this->wait_ds_before(ds_pipe);
      ptx::warpgroup_arrive();
      multiply_dq(dq, shared.ds[ds_pipe.index ^ 1] + from, shared.k[0] + from);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(s);
      ptx::warpgroup_fence_operand(dq);
      if (before.index >= 0) add_dq_before(dq, before);
      before = tile;
      ds_pipe.advance();
    }
    float dq[kDqCount];
    this->wait_ds_before(ds_pipe);
    ptx::warpgroup_arrive();
    multiply_dq(dq, shared.ds[ds_pipe.index ^ 1] + from, shared.k[0] + from);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(dq);
    add_dq_before(dq, before);
    ptx::warpgroup_fence_operand(dk);
    ptx::warpgroup_fence_operand(dv);
    return left;
  }

  /// Adds query tiles that see one half of the keys, up to one that sees both, at most `count`;
  /// returns how many are left. The warpgroup of the half computes all of such a tile, dQ included,
  /// and shares nothing with the other one, which goes on to the next: two tiles are in work.
  __device__ __forceinline__ int walk_halves(int count, float (&dk)[kDim / 2],
                                             float (&dv)[kDim / 2]) {
    const int from = descriptor_base();
    const float scale_log2 = this->scale_log2();
    for (; count > 0; --count) {
      ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
      const RowTile tile = shared.tile[pipe.index];
      const int seen = uniform(seen_halves(tile.pattern));
      if (seen == 3) break;
      if (seen == 1 + group) {
        visit_half(tile, from, scale_log2, dk, dv);
      } else {
        __syncwarp();
        if (tile.pattern >= 0) arrive(shared.pattern_empty);
        arrive(shared.q_empty[pipe.index]);
      }
      dq_phases ^= static_cast<unsigned>(seen);  // the buffer of the half's warpgroup
      pipe.advance();
    }
    return count;
  }

  /// Returns a 0 that is opaque to the compiler, so that each loop computes its descriptors anew:
  /// else those of one loop stay in registers throughout the other one.
  __device__ __forceinline__ static int descriptor_base() {
    int zero = 0;
    if constexpr (Shape::kHalves) {
      asm volatile("mov.b32 %0, 0;" : "=r"(zero));
      zero = __shfl_sync(~0u, zero, 0);
    }
    return zero;
  }
  /// Tells the compiler that `value` is the same in all lanes.
  __device__ __forceinline__ static int uniform(int value) {
    return static_cast<int>(__reduce_or_sync(~0u, static_cast<unsigned>(value)));
  }
  __device__ __forceinline__ void sync_half() const {
    group == 0 ? ptx::named_barrier_sync(BackwardBarrier::half_wg1, 128)
               : ptx::named_barrier_sync(BackwardBarrier::half_wg2, 128);
  }

  /// Sᵀ, dPᵀ, Pᵀ, dSᵀ, dV, dK and dQ of a tile and the keys of this warpgroup.
  __device__ __forceinline__ void visit_half(const RowTile& tile, int from, float scale_log2,
                                             float (&dk)[kDim / 2], float (&dv)[kDim / 2]) {
    using ptx::Major;
    const int stage = pipe.index;
    float s[32];
    float dp[32];
    float2 lse_log2[8];
    ptx::warpgroup_arrive();
    this->template multiply_rows<kDim>(s, shared.k[0] + from, shared.q[stage] + from);
    ptx::warpgroup_commit_group();
    this->template multiply_rows<kDim>(dp, shared.v[0] + from, shared.dout[stage] + from);
    ptx::warpgroup_commit_group();
    this->load_terms(lse_log2, shared.terms[stage][0]);
    ptx::warpgroup_wait_group<1>();
    ptx::warpgroup_fence_operand(s);
    this->exponentiate(s, scale_log2, lse_log2);
    if (tile.pattern >= 0) {
      this->mask(s);
      __syncwarp();
      arrive(shared.pattern_empty);
    }
    std::uint32_t p[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
    ptx::warpgroup_arrive();
    add_product(dv, p, shared.dout[stage] + from);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<1>();
    ptx::warpgroup_fence_operand(dp);
    std::uint32_t ds[16];
    this->multiply_slopes(dp, s, shared.terms[stage][1]);
#pragma unroll
    for (int i = 0; i < 16; ++i) ds[i] = ptx::pack<T>(dp[2 * i], dp[2 * i + 1]);
    // The last tile that saw both halves and had this stage of dSᵀ, which the other warpgroup
    // reads.
    ptx::mbarrier_wait(&shared.ds_empty[ds_pipe.index], ds_pipe.phase ^ 1);
    unsigned char* ds_stage = shared.ds[ds_pipe.index];
    this->store_ds(ds_stage, ds);
    sync_half();
    ptx::fence_proxy_async_shared();
    ptx::warpgroup_arrive();
    add_product(dk, ds, shared.q[stage] + from);
    ptx::warpgroup_commit_group();
    const std::uint64_t keys = mn_major_step(4 * group);
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds_stage + from), 0) + keys;
    const std::uint64_t b =
        ptx::smem_descriptor(ptx::shared_address(shared.k[0] + from), Shape::kKeyColumnBytes) +
        keys;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float dq[kDqCount];
      const std::uint64_t columns = b + half * Shape::kKeyColumnBytes / 16;
      if (half == 1) ptx::warpgroup_arrive();
      ptx::wgmma_ss<T, Major::mn, Major::mn, false>(dq, a, columns);
#pragma unroll
      for (int step = 1; step < 4; ++step) {
        ptx::wgmma_ss<T, Major::mn, Major::mn, true>(dq, a + mn_major_step(step),
                                                     columns + mn_major_step(step));
      }
      ptx::warpgroup_commit_group();
      if (half == 0) {
        ptx::warpgroup_wait_group<1>();
        arrive(shared.q_empty[stage]);
        wait_dq_empty(group);
      }
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(dq);
      if (half == 1) sync_half();  // no warp reads dSᵀ any more
      stage_dq(dq, group, half);
    }
    ptx::warpgroup_fence_operand(dk);
    ptx::warpgroup_fence_operand(dv);
    if (warp == 0 && lane == 0) shared.dq_tile[group] = tile;
    __syncwarp();
    // For this warp, and for that of the other warpgroup.
    arrive(shared.dq_full[group]);
    arrive(shared.dq_full[group]);
  }
};

}  // namespace longca::slice::sm90
