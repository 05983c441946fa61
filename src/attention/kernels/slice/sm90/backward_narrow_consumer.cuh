#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_epilogue.cuh"
#include "attention/kernels/slice/sm90/backward_prepost.cuh"
#include "attention/kernels/slice/sm90/backward_scores.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

// The consumers for 64 dimensions. There the products of a visit are short, and what bounds it is
// the chain of a warpgroup that computes all five of them in turn. So warpgroups have roles: two
// compute P, dS and dV of 64 keys each, and hand dSᵀ through shared memory to the third, which
// computes dK and dQ of all keys a visit later. Neither waits for the other, and K and V fit into
// registers as A operands, so that Sᵀ and dPᵀ read half as much of shared memory.
namespace longca::slice::sm90 {

/// The stage of the n-th use of a pipeline, and the parity of its phase.
template <int kStages>
__device__ __forceinline__ constexpr unsigned stage_of(unsigned n) {
  static_assert((kStages & (kStages - 1)) == 0);
  return n % kStages;
}
template <int kStages>
__device__ __forceinline__ constexpr std::uint32_t parity_of(unsigned n) {
  return n / kStages & 1;
}

/// Computes Pᵀ, dSᵀ and dV of 64 keys.
template <typename Shape>
struct BackwardScoreConsumer : BackwardScores<Shape> {
  using T = typename Shape::T;
  using Base = BackwardScores<Shape>;
  using Base::args, Base::shared, Base::group, Base::warp, Base::lane, Base::arrive;
  static constexpr int kDim = Shape::kDim;
  static_assert(kDim == 64 && Shape::kValueDim == 64);
  static_assert(Shape::kRowsTogether && Shape::kPatternStages == Shape::kStages);
  // The stage and parity of dSᵀ follow from the stage of Q.
  static_assert(Shape::kStages == 4 && Shape::kDsStages == 2);

  ptx::PipelineState<Shape::kStages> pipe{};
  ptx::PipelineState<Shape::kKeyStages> keys_pipe{};

  /// Waits for Q, dO, row terms and the pattern of the stage.
  __device__ __forceinline__ void wait_rows() const {
    ptx::mbarrier_wait(&shared.q_full[pipe.index], pipe.phase);
  }

  /// The warp's 16 keys of K or V as A operands: 4 registers for each 16 dimensions.
  __device__ __forceinline__ void load_keys(std::uint32_t (&a)[16],
                                            const unsigned char* keys) const {
    const std::uint32_t first = ptx::shared_address(keys) + this->operand_offset();
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::ldmatrix_x4(a + step * 4, first ^ (step * 32));
  }

  /// s = a · rowsᵀ: Sᵀ = K Qᵀ or dPᵀ = V dOᵀ.
  __device__ __forceinline__ void multiply_keys(float (&s)[32], const std::uint32_t (&a)[16],
                                                const unsigned char* rows) const {
    using ptx::Major;
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), 0);
    ptx::wgmma_m64n64_rs<T, Major::k, false>(s, a, b);
#pragma unroll
    for (int step = 1; step < 4; ++step) {
      ptx::wgmma_m64n64_rs<T, Major::k, true>(s, a + step * 4,
                                              b + k_major_step<Shape::kRowColumnBytes>(step));
    }
    ptx::warpgroup_commit_group();
  }

  /// dV += Pᵀ dO.
  __device__ __forceinline__ void add_dv(float (&dv)[32], const std::uint32_t (&p)[16],
                                         const unsigned char* dout) const {
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(dout), Shape::kRowColumnBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_rs_add<T>(dv, p + step * 4, b + mn_major_step(step));
    }
    ptx::warpgroup_commit_group();
  }

  /// The A operand dSᵀ = Pᵀ ∘ (dPᵀ − delta).
  __device__ __forceinline__ void differentiate(std::uint32_t (&ds)[16], const float (&p)[32],
                                                const float (&dp)[32],
                                                const float2 (&delta)[8]) const {
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
      const float2 of_rows = delta[i / 4];
      ds[i / 2] = ptx::pack<T>(p[i] * (dp[i] - of_rows.x), p[i + 1] * (dp[i + 1] - of_rows.y));
    }
  }

  __device__ __forceinline__ void run() {
    const BackwardEpilogue<Shape> epilogue{args, shared, group, warp, lane};
    for (;;) {
      const int stage = keys_pipe.index;
      ptx::mbarrier_wait(&shared.keys_full[stage], keys_pipe.phase);
      keys_pipe.advance();
      const int q_tiles = shared.work[stage].q_tiles;
      if (q_tiles < 0) break;
      float dv[kDim / 2];
#pragma unroll
      for (float& x : dv) x = 0;
      if (q_tiles > 0) walk(q_tiles, stage, dv);
      const KeyTileWork work = shared.work[stage];  // now: it would take registers of the loop
      // A warp reads only those rows of V in which it stages dV.
      epilogue.template write_one<1>(work, stage, dv);
      // Orders accesses to V before the TMA load of the next one (async proxy).
      if (epilogue.uses_shared(work)) ptx::fence_proxy_async_shared();
      __syncwarp();
      arrive(shared.keys_empty[stage]);
    }
  }

  /// Adds `count` ≥ 1 query tiles to dV. Software pipeline over tiles i: dPᵀ(i) runs beside the
  /// exponentials, dV(i) beside dSᵀ(i), and Sᵀ(i + 1), which takes the registers of Pᵀ(i), beside
  /// the hand-over of dSᵀ(i). No wgmma is under way where the loop begins anew: ptxas would
  /// serialize them.
  __device__ __forceinline__ void walk(int count, int keys_stage, float (&dv)[kDim / 2]) {
    // The same lane, in a register: the compiler would derive it from threadIdx at each use.
    this->lane = __shfl_sync(~0u, lane, lane);
    const float scale_log2 = args.params.scale * kLog2E;
    std::uint32_t k[16];
    std::uint32_t v[16];
    load_keys(k, shared.k[keys_stage]);
    load_keys(v, shared.v[keys_stage]);
    float s[32];
    ptx::warpgroup_fence_operand(dv);  // set to 0 before the first wgmma, not beside it
    wait_rows();
    ptx::warpgroup_arrive();
    multiply_keys(s, k, shared.q[pipe.index]);
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(s);
    for (int left = count; left > 0; --left) {
      const int stage = pipe.index;
      const int ds_stage = stage % 2;
      const int pattern = shared.tile[stage].pattern;
      float2 lse_log2[8];
      if constexpr (!Shape::kCapped) this->load_terms(lse_log2, shared.terms[stage][0]);

      float dp[32];
      ptx::warpgroup_arrive();
      multiply_keys(dp, v, shared.dout[stage]);
      std::uint32_t p[16];
      if constexpr (Shape::kCapped) {
        this->capped_probabilities(s, p, stage, pattern);
      } else {
        this->exponentiate(s, scale_log2, lse_log2);
        if (pattern >= 0) this->mask(s, stage);
#pragma unroll
        for (int i = 0; i < 16; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
      }
      float2 delta[8];
      this->load_terms(delta, shared.terms[stage][1]);

      ptx::warpgroup_arrive();
      add_dv(dv, p, shared.dout[stage]);
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(dp);
      std::uint32_t ds[16];
      differentiate(ds, s, dp, delta);
      // After the last tile this reads a stage that TMA may be writing, and the result is unused:
      // cheaper than a branch, across which the compiler would not keep wgmma in flight.
      pipe.advance();
      if (left > 1) wait_rows();
      ptx::warpgroup_arrive();
      multiply_keys(s, k, shared.q[pipe.index]);
      ptx::mbarrier_wait(&shared.ds_empty[ds_stage], (stage / 2) ^ 1);
      this->store_ds(shared.ds[ds_stage], ds);  // fenced by BackwardGradientConsumer
      __syncwarp();
      arrive(shared.ds_full[ds_stage]);
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(s);
      arrive(shared.dout_empty[stage]);
    }
    ptx::warpgroup_fence_operand(dv);
  }
};

/// Computes dK and dQ of all 128 keys from dSᵀ.
template <typename Shape>
struct BackwardGradientConsumer {
  using T = typename Shape::T;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kStages = Shape::kStages;
  static constexpr int kHalf = Shape::kDqColumns;  ///< columns of a part of dQ's accumulator

  const BackwardKernelArgs& args;
  typename Shape::Shared& shared;
  int warp;  ///< of the four of the warpgroup
  int lane;
  unsigned visit = 0;  ///< the query tile's number, counted over all work items
  ptx::PipelineState<Shape::kDqBuffers> dq_pipe{};
  ptx::PipelineState<Shape::kKeyStages> keys_pipe{};

  __device__ __forceinline__ void arrive(std::uint64_t& barrier) const {
    ptx::mbarrier_arrive_warp(&barrier, lane);
  }

  /// dq = dS K: [64 rows, kDim] over all keys. `ds` is dSᵀ, an MN-major A.
  __device__ __forceinline__ void multiply_dq(float (&dq)[32], const unsigned char* ds,
                                              const unsigned char* keys) const {
    using ptx::Major;
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds), 0);
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(keys), 0);
    ptx::warpgroup_arrive();
    ptx::wgmma_ss<T, Major::mn, Major::mn, false>(dq, a, b);
#pragma unroll
    for (int step = 1; step < kTileKeys / 16; ++step) {
      ptx::wgmma_ss<T, Major::mn, Major::mn, true>(dq, a + mn_major_step(step),
                                                   b + mn_major_step(step));
    }
    ptx::warpgroup_commit_group();
  }

  /// dK += dSᵀ Q: `low` of the first 64 keys, `high` of the others.
  __device__ __forceinline__ void add_dk(float (&low)[32], float (&high)[32],
                                         const unsigned char* ds, const unsigned char* rows) const {
    using ptx::Major;
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds), 0);
    const std::uint64_t more = ptx::smem_descriptor(ptx::shared_address(ds) + 64 * 128, 0);
    const std::uint64_t b = ptx::smem_descriptor(ptx::shared_address(rows), 0);
    ptx::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_ss<T, Major::k, Major::mn, true>(low, a + k_major_step<0>(step),
                                                  b + mn_major_step(step));
    }
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_ss<T, Major::k, Major::mn, true>(high, more + k_major_step<0>(step),
                                                  b + mn_major_step(step));
    }
    ptx::warpgroup_commit_group();
  }

  /// Hands dQ to a BackwardDqAccumulator through shared memory, in the layout of dq_accum: a thread
  /// has columns of both of its parts.
  __device__ __forceinline__ void add_dq(const float (&dq)[32], const RowTile& tile) {
    const int buffer = wait_dq_empty();
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      float* part = shared.dq[buffer][i / (kHalf / 2) * 4 + warp];
      *reinterpret_cast<float4*>(part + i % (kHalf / 2) * 32 + lane * 4) =
          make_float4(dq[i], dq[i + 1], dq[i + 2], dq[i + 3]);
    }
    signal_dq_full(buffer, tile);
  }
  __device__ __forceinline__ int wait_dq_empty() const {
    ptx::mbarrier_wait(&shared.dq_empty[dq_pipe.index], dq_pipe.phase ^ 1);
    return dq_pipe.index;
  }
  __device__ __forceinline__ void signal_dq_full(int buffer, const RowTile& tile) {
    if (warp == 0 && lane == 0) shared.dq_tile[buffer] = tile;
    __syncwarp();
    arrive(shared.dq_full[buffer]);
    dq_pipe.advance();
  }
  __device__ __forceinline__ void stop_dq_warps() {
    for (int i = 0; i < Shape::kDqBuffers; ++i) signal_dq_full(wait_dq_empty(), {-1, 0, 0});
  }

  __device__ __forceinline__ void run() {
    const BackwardEpilogue<Shape> first{args, shared, 0, warp, lane};
    const BackwardEpilogue<Shape> second{args, shared, 1, warp, lane};
    for (;;) {
      const int stage = keys_pipe.index;
      ptx::mbarrier_wait(&shared.keys_full[stage], keys_pipe.phase);
      keys_pipe.advance();
      const int q_tiles = shared.work[stage].q_tiles;
      if (q_tiles < 0) break;
      float low[kDim / 2];
      float high[kDim / 2];
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) low[i] = high[i] = 0;
      if (q_tiles > 0) walk(q_tiles, shared.k[stage], low, high);
      const KeyTileWork work = shared.work[stage];  // now: it would take registers of the loop
      // Once all its warps are here, no wgmma reads K any more. The score warps have loaded theirs.
      ptx::named_barrier_sync(BackwardBarrier::epilogue_wg3, 128);
      first.template write_one<0>(work, stage, low);
      second.template write_one<0>(work, stage, high);
      // Orders accesses to K before the TMA load of the next one (async proxy).
      if (first.uses_shared(work)) ptx::fence_proxy_async_shared();
      __syncwarp();
      arrive(shared.keys_empty[stage]);
    }
    stop_dq_warps();
  }

  /// Adds `count` ≥ 1 query tiles to dK. Software pipeline over tiles i: dQ(i) is issued behind
  /// dK(i − 1), and handed over beside dK(i).
  __device__ __forceinline__ void walk(int count, const unsigned char* keys, float (&low)[kDim / 2],
                                       float (&high)[kDim / 2]) {
    ptx::warpgroup_fence_operand(low);
    ptx::warpgroup_fence_operand(high);
    for (int left = count; left > 0; --left) {
      const unsigned stage = stage_of<kStages>(visit);
      const unsigned ds_stage = stage_of<Shape::kDsStages>(visit);
      ptx::mbarrier_wait(&shared.q_full[stage], parity_of<kStages>(visit));
      const RowTile tile = shared.tile[stage];
      ptx::mbarrier_wait(&shared.ds_full[ds_stage], parity_of<Shape::kDsStages>(visit));
      // Orders the dSᵀ that the score warps stored, and this thread has acquired, before its wgmma
      // (async proxy). One proxy fence on the way suffices: here, as this warpgroup has the time.
      ptx::fence_proxy_async_shared();
      const unsigned char* ds = shared.ds[ds_stage];
      float dq[32];
      multiply_dq(dq, ds, keys);
      ptx::warpgroup_wait_group<1>();
      if (left < count) release(visit - 1);
      add_dk(low, high, ds, shared.q[stage]);
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(dq);
      add_dq(dq, tile);
      ++visit;
    }
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(low);
    ptx::warpgroup_fence_operand(high);
    release(visit - 1);
  }

  /// Marks Q and dSᵀ of query tile `n` empty: all products that read them are complete.
  __device__ __forceinline__ void release(unsigned n) const {
    arrive(shared.ds_empty[stage_of<Shape::kDsStages>(n)]);
    arrive(shared.q_empty[stage_of<kStages>(n)]);
  }
};

}  // namespace longca::slice::sm90
