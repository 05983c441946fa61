#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_scores.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/memory.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"

namespace longca::slice::sm90 {

/// The consumer for more than 128 dimensions, of two kinds.
///
/// V of at most 128 (192:128): a warpgroup owns 64 of 128 keys and their dK and dV, which take 160
/// of a thread's 240 registers.
///
/// Wider V (256): a key tile has 64 keys. Both warpgroups compute all scores, and each owns half of
/// the dimensions of dK and dV. Scores twice cost two of seven products; to split them would cost
/// an exchange of P and dS through shared memory before every product that follows.
///
/// In both a warpgroup computes dQ of half of the dimensions, over all keys, and hands it over
/// through a buffer of its own. No registers are left to have the next scores under way: the
/// products of one warpgroup run beside the exponentials of the other.
template <typename Shape>
struct BackwardWideConsumer : BackwardScores<Shape> {
  using T = typename Shape::T;
  using Base = BackwardScores<Shape>;
  using Base::args, Base::shared, Base::group, Base::warp, Base::lane, Base::arrive;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kValueDim = Shape::kValueDim;
  static constexpr bool kOwnsKeys = Shape::kKeys == kTileKeys;
  /// Columns of dK and dV that the warpgroup owns.
  static constexpr int kOwnDim = kOwnsKeys ? kDim : kDim / 2;
  static constexpr int kOwnValueDim = kOwnsKeys ? kValueDim : kValueDim / 2;
  static constexpr int kMoreDqColumns = Shape::kMoreDqColumns;

  ptx::PipelineState<Shape::kStages> pipe{};
  ptx::PipelineState<Shape::kDoutStages> dout_pipe{};
  ptx::PipelineState<2> ds_pipe{};
  std::uint32_t dq_phase = 0;
  std::uint32_t keys_phase = 0;

  /// sum += a · rows over the columns that the warpgroup owns: dV += Pᵀ dO or dK += dSᵀ Q.
  template <int kCount>
  __device__ __forceinline__ void add_product(float (&sum)[kCount], const std::uint32_t (&a)[16],
                                              const unsigned char* rows) const {
    const int first = kOwnsKeys ? 0 : group * (2 * kCount / 64) * Shape::kRowColumnBytes;
    const std::uint64_t b =
        ptx::smem_descriptor(ptx::shared_address(rows) + first, Shape::kRowColumnBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      ptx::wgmma_rs_add<T>(sum, a + step * 4, b + mn_major_step(step));
    }
  }

  /// dq = dS K: [64 rows, 2 · kCount columns from `column` on], over all keys. `ds` is
  /// dSᵀ, an MN-major A.
  template <int kCount>
  __device__ __forceinline__ void multiply_dq(float (&dq)[kCount], const unsigned char* ds,
                                              int column) const {
    using ptx::Major;
    const std::uint64_t a = ptx::smem_descriptor(ptx::shared_address(ds), 0);
    const std::uint64_t b = ptx::smem_descriptor(
        ptx::shared_address(shared.k[0]) + column / 64 * Shape::kKeyColumnBytes + column % 64 * 2,
        Shape::kKeyColumnBytes);
    ptx::wgmma_ss<T, Major::mn, Major::mn, false>(dq, a, b);
#pragma unroll
    for (int step = 1; step < Shape::kKeys / 16; ++step) {
      ptx::wgmma_ss<T, Major::mn, Major::mn, true>(dq, a + mn_major_step(step),
                                                   b + mn_major_step(step));
    }
  }

  /// The A operands p = Pᵀ, unless it is known, and ds = dSᵀ = s ∘ (dPᵀ − delta) of the rows
  /// [kFirst / 32 · 64, …), whose dPᵀ is dp; s is Pᵀ, with a softcap times its slope.
  template <int kFirst, int kCount>
  __device__ __forceinline__ void differentiate(const float (&s)[32], const float (&dp)[kCount],
                                                std::uint32_t (&p)[16], std::uint32_t (&ds)[16],
                                                const float* delta) const {
#pragma unroll
    for (int i = 0; i < kCount; i += 4) {
      const int at = kFirst + i;
      const float2 of_rows = *reinterpret_cast<const float2*>(delta + at * 2);
      if constexpr (!Shape::kCapped) {
        p[at / 2] = ptx::pack<T>(s[at], s[at + 1]);
        p[at / 2 + 1] = ptx::pack<T>(s[at + 2], s[at + 3]);
      }
      ds[at / 2] = ptx::pack<T>(s[at] * (dp[i] - of_rows.x), s[at + 1] * (dp[i + 1] - of_rows.y));
      ds[at / 2 + 1] =
          ptx::pack<T>(s[at + 2] * (dp[i + 2] - of_rows.x), s[at + 3] * (dp[i + 3] - of_rows.y));
    }
  }

  /// Computes p and ds of a query tile whose Q has arrived.
  __device__ __forceinline__ void scores(std::uint32_t (&p)[16], std::uint32_t (&ds)[16], int stage,
                                         int dout_stage, int pattern) const {
    const float* delta = shared.terms[stage][1] + lane % 4 * 2;
    const float scale_log2 = args.params.scale * kLog2E;
    float2 lse_log2[8];  // at 256 dimensions ahead of the products it took 2.5 % longer
    if constexpr (kOwnsKeys) this->load_terms(lse_log2, shared.terms[stage][0]);
    float s[32];
    ptx::warpgroup_arrive();
    this->template multiply_rows<kDim>(s, shared.k[0], shared.q[stage]);
    ptx::warpgroup_commit_group();
    ptx::mbarrier_wait(&shared.dout_full[dout_stage], dout_pipe.phase);
    if constexpr (kOwnsKeys) {
      static_assert(!Shape::kCapped, "P and its slope would take too many registers");
      // dPᵀ of half of the rows at a time: dK, dV, Pᵀ and all of it would not fit into registers.
      const unsigned char* dout = shared.dout[dout_stage];
      float dp[16];
      ptx::warpgroup_arrive();
      this->template multiply_rows<kValueDim>(dp, shared.v[0], dout);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(s);
      this->exponentiate(s, scale_log2, lse_log2);
      if (pattern >= 0) this->mask(s);
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(dp);
      differentiate<0>(s, dp, p, ds, delta);
      ptx::warpgroup_fence_operand(dp);
      ptx::warpgroup_arrive();
      this->template multiply_rows<kValueDim>(dp, shared.v[0], dout + 32 * 128);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(dp);
      differentiate<16>(s, dp, p, ds, delta);
    } else {
      float dp[32];
      ptx::warpgroup_arrive();
      this->template multiply_rows<kValueDim>(dp, shared.v[0], shared.dout[dout_stage]);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<1>();
      ptx::warpgroup_fence_operand(s);
      if constexpr (Shape::kCapped) {
        this->capped_probabilities(s, p, stage, pattern);
      } else {
        this->load_terms(lse_log2, shared.terms[stage][0]);
        this->exponentiate(s, scale_log2, lse_log2);
        if (pattern >= 0) this->mask(s);
      }
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(dp);
      differentiate<0>(s, dp, p, ds, delta);
    }
  }

  /// Hands dQ to the BackwardDqAccumulator of this warpgroup's buffer.
  __device__ __forceinline__ void add_dq(const float (&first)[32],
                                         const float (&more)[kMoreDqColumns / 2],
                                         const RowTile& tile) {
    ptx::mbarrier_wait(&shared.dq_empty[group], dq_phase ^ 1);
    float* staged = shared.dq[group][warp] + lane * 4;
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      *reinterpret_cast<float4*>(staged + i * 32) =
          make_float4(first[i], first[i + 1], first[i + 2], first[i + 3]);
    }
#pragma unroll
    for (int i = 0; i < kMoreDqColumns / 2; i += 4) {
      *reinterpret_cast<float4*>(staged + (32 + i) * 32) =
          make_float4(more[i], more[i + 1], more[i + 2], more[i + 3]);
    }
    signal_dq_full(tile);
  }
  __device__ __forceinline__ void signal_dq_full(const RowTile& tile) {
    if (warp == 0 && lane == 0) shared.dq_tile[group] = tile;
    __syncwarp();
    arrive(shared.dq_full[group]);
    dq_phase ^= 1;
  }

  __device__ __forceinline__ void run() {
    for (;;) {
      ptx::mbarrier_wait(&shared.keys_full[0], keys_phase);
      keys_phase ^= 1;
      const int q_tiles = shared.work[0].q_tiles;
      if (q_tiles < 0) break;
      float dk[kOwnDim / 2];
      float dv[kOwnValueDim / 2];
#pragma unroll
      for (float& x : dk) x = 0;
#pragma unroll
      for (float& x : dv) x = 0;
      if (q_tiles > 0) walk(q_tiles, dk, dv);
      const KeyTileWork work = shared.work[0];  // now: it would take registers of the loop
      // All products are complete: K and V may be overwritten.
      __syncwarp();
      arrive(shared.keys_empty[0]);
      write(work, dk, dv);
    }
    ptx::mbarrier_wait(&shared.dq_empty[group], dq_phase ^ 1);
    signal_dq_full({-1, 0, 0});
  }

  /// Adds `count` ≥ 1 query tiles to dK and dV. dQ of a tile is computed beside the products of the
  /// next one: by then the other warpgroup has written its part of dSᵀ.
  __device__ __forceinline__ void walk(int count, float (&dk)[kOwnDim / 2],
                                       float (&dv)[kOwnValueDim / 2]) {
    this->keep_place();
    RowTile before{-1, 0, 0};
    for (int left = count; left > 0; --left) {
      const int stage = pipe.index;
      const int dout_stage = dout_pipe.index;
      ptx::mbarrier_wait(&shared.q_full[stage], pipe.phase);
      const RowTile tile = shared.tile[stage];
      std::uint32_t p[16];
      std::uint32_t ds[16];
      scores(p, ds, stage, dout_stage, tile.pattern);
      if (tile.pattern >= 0) {
        __syncwarp();
        arrive(shared.pattern_empty);
      }
      ptx::mbarrier_wait(&shared.ds_empty[ds_pipe.index], ds_pipe.phase ^ 1);
      // Where both warpgroups have the same keys, each stores half of them. Fenced by its readers.
      if (kOwnsKeys || warp / 2 == group) this->store_ds(shared.ds[ds_pipe.index], ds);
      __syncwarp();
      arrive(shared.ds_full[ds_pipe.index]);

      ptx::warpgroup_arrive();
      add_product(dv, p, shared.dout[dout_stage]);
      add_product(dk, ds, shared.q[stage]);
      ptx::warpgroup_commit_group();
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(dk);
      ptx::warpgroup_fence_operand(dv);
      arrive(shared.dout_empty[dout_stage]);
      arrive(shared.q_empty[stage]);
      if (before.index >= 0) add_dq_before(before);
      before = tile;
      pipe.advance();
      dout_pipe.advance();
      ds_pipe.advance();
    }
    add_dq_before(before);
  }

  /// Computes and hands over dQ of the query tile before, whose dSᵀ is in the other stage.
  __device__ __forceinline__ void add_dq_before(const RowTile& tile) {
    const int stage = ds_pipe.index ^ 1;
    this->wait_ds_before(ds_pipe);
    float first[32];
    float more[kMoreDqColumns / 2];
    ptx::warpgroup_arrive();
    multiply_dq(first, shared.ds[stage], group * 64);
    multiply_dq(more, shared.ds[stage], 128 + group * kMoreDqColumns);
    ptx::warpgroup_commit_group();
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(first);
    ptx::warpgroup_fence_operand(more);
    arrive(shared.ds_empty[stage]);
    add_dq(first, more, tile);
  }

  /// Writes dK and dV into the gradients or, of a split key tile, adds them to float32 accumulators
  /// in device memory.
  __device__ __forceinline__ void write(const KeyTileWork& work, float (&dk)[kOwnDim / 2],
                                        float (&dv)[kOwnValueDim / 2]) const {
#pragma unroll
    for (float& x : dk) x *= args.params.scale;
    const StoreMode mode = args.params.dkv_mode;
    if (work.q_tiles == 0 && (mode == StoreMode::add_float32 || work.split >= 0)) return;
    const DkvSemaphore semaphore(args, work, group * 4 + warp);
    if (work.split >= 0 && mode != StoreMode::add_float32) {
      add_to_accumulator<kDim>(dk, work, 0);
      add_to_accumulator<kValueDim>(dv, work, 1);
      return;
    }
    write_rows<kDim>(dk, args.params.dk, args.dim, work);
    write_rows<kValueDim>(dv, args.params.dv, args.value_dim, work);
  }

  /// Other CTAs add to the same accumulator: reductions, in the layout of dq_accum.
  template <int kColumns, int kCount>
  __device__ __forceinline__ void add_to_accumulator(const float (&sum)[kCount],
                                                     const KeyTileWork& work, int which) const {
    const int sixteen = (kOwnsKeys ? group : 0) * 4 + warp;
    const int half = kOwnsKeys ? 0 : group;
    float* to = dkv_accum<Shape>(args, work.split, work.kv_head, which) +
                sixteen * (16 * kColumns) + half * (8 * kColumns) + lane * 4;
#pragma unroll
    for (int i = 0; i < kCount; i += 4) ptx::red_add_v4(to + i * 32, sum + i);
  }

  /// Writes the warp's 16 keys of a gradient, or adds them: two columns a thread at a time.
  template <int kColumns, int kCount>
  __device__ __forceinline__ void write_rows(const float (&sum)[kCount], const TensorArg& tensor,
                                             int dim, const KeyTileWork& work) const {
    const StoreMode mode = args.params.dkv_mode;
    const int first_column = (kOwnsKeys ? 0 : group * (kColumns / 2)) + lane % 4 * 2;
    const int first = work.k_begin + this->group_key() + warp * 16 + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t key = first + half * 8;
      if (key >= work.k_end) continue;
      const std::int64_t row =
          key * tensor.token_stride + work.kv_head * tensor.head_stride + first_column;
#pragma unroll
      for (int i = 0; i < kCount / 4; ++i) {
        if (first_column + i * 8 >= dim) continue;
        const float low = sum[i * 4 + half * 2];
        const float high = sum[i * 4 + half * 2 + 1];
        float* wide = static_cast<float*>(tensor.data) + row + i * 8;
        if (mode == StoreMode::overwrite) {
          *reinterpret_cast<std::uint32_t*>(static_cast<T*>(tensor.data) + row + i * 8) =
              ptx::pack<T>(low, high);
        } else if (mode == StoreMode::add_float32) {
          ptx::red_add_v2(wide, low, high);
        } else {
          *reinterpret_cast<float2*>(wide) = make_float2(low, high);
        }
      }
    }
  }
};

}  // namespace longca::slice::sm90
