#pragma once

#include "attention/kernels/common/softcap.cuh"
#include "attention/kernels/slice/sm90/forward_epilogue.cuh"
#include "attention/kernels/slice/sm90/forward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"
#include "attention/kernels/slice/sm90/softmax.cuh"

namespace longca::slice::sm90 {

/// Which softmax a key tile gets.
enum class TileSoftmax {
  masked,       ///< online_softmax_masked after the pattern; scores may be −∞
  with_max,     ///< online_softmax_masked; no pattern, no score is −∞
  without_max,  ///< online_softmax_unmasked; likewise, and few scores should exceed the row max
  unchecked,    ///< likewise, with sums that somebody else looks at, behind all tiles
  unchecked_masked,  ///< the same after the pattern; every row has seen a key before
};

/// A consumer warpgroup computes 64 rows, in steps of a key tile or, at 256 dimensions, of a
/// sub-tile. P V of a step runs while the scores of the next one go through the softmax. At 128
/// dimensions q, s, p and o take 192 of a thread's 224 registers.
template <typename Shape>
struct ForwardConsumer {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;
  static constexpr int kStepKeys = Shape::kStepKeys;

  const ForwardKernelArgs& args;
  Shared& shared;
  const int group;         ///< 0 or 1, of the stream
  const int rank;          ///< in the cluster
  const float scale_log2;  ///< softmax scale · log2 e; 1 for capped scores
  ptx::PipelineState<Shape::kStages> pipe{};
  int v_stage = 0;  ///< of the tile whose P V is still to be issued (pending)
  std::uint32_t v_phase = 0;
  int stored = -1;  ///< stage of Q that O left through, to be marked empty; or −1
  ptx::PipelineState<Shape::kQueryStages> item{};  ///< of the work tile
  bool checks = false;  ///< with kUnchecked: lets row maxima move in every tile
  /// A operand [64, kDim]; in registers it saves smem bandwidth. Else its descriptor.
  std::uint32_t q[Shape::kQueriesInRegisters ? kDim / 4 : 1];
  std::uint64_t q_descriptor = 0;
  float s[kStepKeys / 2];          ///< scores [64, kStepKeys], then probabilities
  std::uint32_t p[kStepKeys / 4];  ///< probabilities as the A operand of P V
  float o[Shape::kValueDim / 2];   ///< accumulator [64, kValueDim]
  SoftmaxState softmax;
  __device__ static int thread() { return static_cast<int>(threadIdx.x & 127); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x & 31); }

  /// Marks the stage empty, in both CTAs of a cluster, once every lane has read it.
  __device__ void release(int stage) {
    __syncwarp();
    ptx::mbarrier_arrive_warp(&shared.empty[stage], lane());
    if (Shape::kCluster > 1 && (ptx::kEveryThreadArrives || lane() == 1)) {
      ptx::cluster_mbarrier_arrive(&shared.empty[stage], rank ^ 1);
    }
  }

  /// Loads Q of this warpgroup's rows, [64, kDim]. By the 128-byte swizzle, 16-byte chunk c of row
  /// r lies at chunk c ^ (r & 7).
  __device__ __forceinline__ void load_q(int stage) {
    const unsigned char* from = shared.q[stage] + group * (kGroupRows * 128);
    if constexpr (!Shape::kQueriesInRegisters) {
      q_descriptor = ptx::smem_descriptor(ptx::shared_address(from), 0);
      return;
    }
    const int row = thread() / 32 * 16 + lane() % 16;
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int chunk = step % 4 * 2 + lane() / 16;
      ptx::ldmatrix_x4(q + 4 * step, ptx::shared_address(from + step / 4 * Shape::kRowColumnBytes +
                                                         row * 128 + (chunk ^ (row & 7)) * 16));
    }
  }

  /// Issues s = q · kᵀ, [64, kKeys], and commits it as a group.
  template <int kKeys>
  __device__ __forceinline__ void issue_qk(int stage) {
    using ptx::Major;
    const std::uint64_t k =
        ptx::smem_descriptor(ptx::shared_address(Shape::stage(shared, stage)), 16);
    // Else the compiler keeps the descriptors of all steps in registers, from tile to tile.
    if constexpr (!Shape::kQueriesInRegisters) asm volatile("" : "+l"(q_descriptor));
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int offset = (step / 4 * Shape::kKeyColumnBytes + step % 4 * 32) / 16;
      if constexpr (!Shape::kQueriesInRegisters) {
        const std::uint64_t a =
            q_descriptor + (step / 4 * Shape::kRowColumnBytes + step % 4 * 32) / 16;
        if constexpr (kKeys == kSubTileKeys) {
          step == 0 ? ptx::wgmma_m64n64_ss<T, Major::k, Major::k, false>(s, a, k)
                    : ptx::wgmma_m64n64_ss<T, Major::k, Major::k, true>(s, a, k + offset);
        } else {
          step == 0 ? ptx::wgmma_ss<T, Major::k, Major::k, false>(s, a, k)
                    : ptx::wgmma_ss<T, Major::k, Major::k, true>(s, a, k + offset);
        }
      } else if constexpr (kKeys == kSubTileKeys) {
        step == 0 ? ptx::wgmma_m64n64_rs<T, Major::k, false>(s, q, k)
                  : ptx::wgmma_m64n64_rs<T, Major::k, true>(s, q + 4 * step, k + offset);
      } else {
        step == 0 ? ptx::wgmma_m64n128_rs<T, Major::k, false>(s, q, k)
                  : ptx::wgmma_m64n128_rs<T, Major::k, true>(s, q + 4 * step, k + offset);
      }
    }
    ptx::warpgroup_commit_group();
  }

  /// Issues o += p · v, with v [kKeys, kValueDim] read as an MN-major B, and commits it as a group.
  template <int kKeys>
  __device__ __forceinline__ void issue_pv(int stage) {
    const std::uint64_t v = ptx::smem_descriptor(ptx::shared_address(Shape::stage(shared, stage)),
                                                 Shape::kKeyColumnBytes);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      ptx::wgmma_rs_add<T>(o, p + 4 * step, v + step * (16 * 128 / 16));
    }
    ptx::warpgroup_commit_group();
  }

  /// What this warpgroup sees of a key tile: kFull, kNone or a pattern, and then the column
  /// intervals of this thread's two rows, lane / 4 and lane / 4 + 8 of the warp's 16. Read from the
  /// stage of K, so before that is released.
  struct TileMask {
    int pattern;
    RowIntervals low, high;
  };
  __device__ __forceinline__ TileMask tile_mask(int stage) const {
    TileMask mask{shared.pattern[stage][group], {}, {}};
    if (mask.pattern >= 0) {
      const int row = thread() / 32 * 16 + lane() / 4;
      const RowIntervals* intervals = shared.intervals[Shape::pattern_stage(stage)][group];
      mask.low = intervals[row >> args.pack_shift];
      mask.high = intervals[(row + 8) >> args.pack_shift];
    }
    return mask;
  }

  /// Caps s, raw products q · k, before they are masked.
  template <int kKeys>
  __device__ __forceinline__ void apply_softcap() {
    if constexpr (Shape::kCapped) cap_scores<kKeys / 2>(s, args.params.softcap);
  }

  /// s = scores − row max, both in log2, of a tile without −∞.
  __device__ __forceinline__ void subtract_row_max() {
    const float offset[2] = {softmax.offset(0), softmax.offset(1)};
#pragma unroll
    for (int i = 0; i < kStepKeys / 2; ++i) s[i] = fmaf(s[i], scale_log2, -offset[i / 2 % 2]);
  }

  /// online_softmax_masked of s.
  template <int kKeys>
  __device__ __forceinline__ bool masked_softmax(float (&o_scale)[2], float slack = kMaxSlack) {
    return online_softmax_masked<kKeys, Shape::kCapped>(
        s, softmax, scale_log2, o_scale, lowest_row_max<T>(args.params.softcap.cap_log2), slack);
  }

  /// Whether probabilities of full tiles are computed before their sums are known.
  __device__ __forceinline__ bool computes_parts() const {
    return Shape::kCapped && args.params.softcap.cap_log2 <= max_computed_cap_log2<T>();
  }

  /// The parts in which probabilities of a full tile with a softcap are computed. Exponentials of
  /// the part before run beside a part's range and its polynomials, a half beside each: alone, each
  /// half of the work would leave MUFU or the FMA pipes idle.
  static constexpr int kPart = kCapPart;
  template <int kBegin, int kEnd>
  __device__ __forceinline__ void exponentiate(float* part) {
#pragma unroll
    for (int i = kBegin; i < kEnd; ++i) part[i] = ptx::exp2(part[i]);
  }

  /// Turns s, raw products of a tile without −∞, into probabilities, but for those of the last
  /// part, which are scores − row max then.
  __device__ __forceinline__ void compute_first_parts() {
    const Softcap& cap = args.params.softcap;
    const float offset[2] = {softmax.offset(0), softmax.offset(1)};
#pragma unroll
    for (int first = 0; first < kStepKeys / 2; first += kPart) {
      float* part = s + first;
      if (first > 0) exponentiate<0, kPart / 2>(part - kPart);
      with_score_range(part, cap, [&]<CapRange kRange>(const float(&shifted)[kPart]) {
#pragma unroll
        for (int i = 0; i < kPart; ++i) {
          part[i] = capped_score<kRange>(part[i], shifted[i], cap, offset[i / 2 % 2]);
        }
        if (first > 0) exponentiate<kPart / 2, kPart>(part - kPart);
      });
    }
  }

  template <int kKeys>
  __device__ __forceinline__ void pack_probabilities() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
  }

  /// Computes the probabilities of the keys at `pipe`, of a key tile or its `sub_tile`, and leaves
  /// their P V pending, to be issued by the next step or finish(). With kPending, P V of the step
  /// before runs beside the softmax. Returns whether a row max of this warp moved.
  template <TileSoftmax kSoftmax, bool kPending>
  __device__ __forceinline__ bool step(int sub_tile = 0, float slack = kMaxSlack) {
    constexpr bool kMasked =
        kSoftmax == TileSoftmax::masked || kSoftmax == TileSoftmax::unchecked_masked;
    constexpr bool kUnchecked =
        kSoftmax == TileSoftmax::unchecked || kSoftmax == TileSoftmax::unchecked_masked;
    constexpr bool kTakesMax = kSoftmax == TileSoftmax::masked || kSoftmax == TileSoftmax::with_max;
    const int k_stage = pipe.index;
    if constexpr (kPending) ptx::mbarrier_wait(&shared.full[v_stage], v_phase);
    ptx::mbarrier_wait(&shared.full[k_stage], pipe.phase);
    ptx::warpgroup_fence_operand(s);
    ptx::warpgroup_fence_operand(o);
    if constexpr (kPending) ptx::warpgroup_fence_operand(p);
    ptx::warpgroup_arrive();
    issue_qk<kStepKeys>(k_stage);
    if constexpr (kPending) issue_pv<kStepKeys>(v_stage);
    TileMask mask{kFull, {}, {}};
    if constexpr (kMasked) mask = tile_mask(k_stage);
    ptx::warpgroup_wait_group<kPending ? 1 : 0>();
    ptx::warpgroup_fence_operand(s);
    release(k_stage);
    if constexpr (kTakesMax) apply_softcap<kStepKeys>();
    if constexpr (kMasked) {
      if (mask.pattern >= 0) mask_scores<kStepKeys>(s, mask.low, mask.high, sub_tile);
    }
    float o_scale[2];
    bool grew;
    if constexpr (kTakesMax) {
      grew = masked_softmax<kStepKeys>(o_scale, slack);
    } else if constexpr (Shape::kCapped) {
      compute_first_parts();
      ptx::warpgroup_fence_operand(s);
    } else {
      subtract_row_max();
      if constexpr (kUnchecked) {
#pragma unroll
        for (float& x : s) x = ptx::exp2(x);
      }
      ptx::warpgroup_fence_operand(s);
    }
    if constexpr (kPending) {
      ptx::warpgroup_wait_group<0>();
      ptx::warpgroup_fence_operand(o);
      release(v_stage);
    }
    if constexpr (kTakesMax) {
      pack_probabilities<kStepKeys>();
    } else if constexpr (Shape::kCapped) {
      exponentiate<0, kPart>(s + kStepKeys / 2 - kPart);
      grew = online_softmax_computed<T>(s, p, softmax, o_scale);
    } else if constexpr (kUnchecked) {
      sum_and_pack<T>(s, p, softmax);
      grew = false;
    } else {
      grew = online_softmax_unmasked<T>(s, p, softmax, o_scale);
    }
    if (grew) rescale_o(o, o_scale);
    pipe.advance();
    v_stage = pipe.index;
    v_phase = pipe.phase;
    pipe.advance();
    return grew;
  }

  /// A narrow tile, from scores to O; its K has arrived (sees_tile). No P V is pending before or
  /// after.
  __device__ __forceinline__ void narrow_step() {
    const int k_stage = pipe.index;
    ptx::warpgroup_fence_operand(s);
    ptx::warpgroup_arrive();
    issue_qk<kSubTileKeys>(k_stage);
    const TileMask mask = tile_mask(k_stage);
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(s);
    release(k_stage);
    apply_softcap<kSubTileKeys>();
    if (mask.pattern >= 0) mask_scores<kSubTileKeys>(s, mask.low, mask.high);
    float o_scale[2];
    if (masked_softmax<kSubTileKeys>(o_scale)) rescale_o(o, o_scale);
    pack_probabilities<kSubTileKeys>();
    pipe.advance();
    ptx::mbarrier_wait(&shared.full[pipe.index], pipe.phase);
    ptx::warpgroup_fence_operand(o);
    ptx::warpgroup_fence_operand(p);
    ptx::warpgroup_arrive();
    issue_pv<kSubTileKeys>(pipe.index);
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(o);
    release(pipe.index);
    pipe.advance();
  }

  /// Completes the pending P V.
  __device__ __forceinline__ void finish() {
    ptx::mbarrier_wait(&shared.full[v_stage], v_phase);
    ptx::warpgroup_fence_operand(o);
    ptx::warpgroup_fence_operand(p);
    ptx::warpgroup_arrive();
    issue_pv<kStepKeys>(v_stage);
    ptx::warpgroup_wait_group<0>();
    ptx::warpgroup_fence_operand(o);
    release(v_stage);
  }

  /// Waits for K of the tile at `pipe`; whether the tile has keys for this warpgroup.
  __device__ __forceinline__ bool sees_tile() {
    ptx::mbarrier_wait(&shared.full[pipe.index], pipe.phase);
    return shared.pattern[pipe.index][group] != kNone;
  }
  /// Releases K and V unused. Waits for both first: until the stage is full again, the empty phase
  /// before may be open, and would count this arrival for a warp that still reads.
  __device__ __forceinline__ void skip_tile() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::mbarrier_wait(&shared.full[pipe.index], pipe.phase);
      release(pipe.index);
      pipe.advance();
    }
  }

  /// The sub-tile of a key tile that step `i` of a work tile computes: 0 if it computes both.
  __device__ __forceinline__ static int sub_tile_of(const WorkTile& work, int i) {
    return Shape::kStepsPerTile == 1 || i < work.narrow_tiles ? 0 : (i - work.narrow_tiles) % 2;
  }

  /// Computes a work tile's narrow tiles, which come first. Returns how many.
  __device__ __forceinline__ int attend_narrow(const WorkTile& work) {
    int i = 0;
    for (; i < work.narrow_tiles; ++i) {
      sees_tile() ? narrow_step() : skip_tile();
      release_stored();
    }
    return i;
  }

  /// attend() with kUnchecked: narrow tiles, full ones, other partial ones. Returns whether this
  /// thread's sums say that a row max should have moved. If not, in any thread of the warpgroup,
  /// the results have the bits that they have with `checks`, where none has moved either.
  __device__ __forceinline__ bool attend_unchecked(const WorkTile& work) {
    static_assert(Shape::kStepsPerTile == 1);
    const int full_end = work.narrow_tiles + work.full_tiles;
    const int count = work.partial_count + work.full_tiles;
    const bool has_full = work.full_tiles > 0;
    bool repeats = false;
    int i = attend_narrow(work);
    while (i < count) {
      if (i >= full_end && !sees_tile()) {
        skip_tile();
        ++i;
        continue;
      }
      ++i;
      step<TileSoftmax::masked, false>();
      release_stored();
      // The loops issue wgmma: all warps of the warpgroup must take the same one.
      if (!checks && i < full_end) {
        for (; i < full_end; ++i) step<TileSoftmax::unchecked, true>();
      }
      if (!checks && has_full) {
        for (; i < count && sees_tile(); ++i) step<TileSoftmax::unchecked_masked, true>();
        repeats = repeats || exceeds<T>(softmax.row_sum, softmax);
      } else {
        const float slack = has_full ? kCheckedSlack : kMaxSlack;
        for (; i < count && sees_tile(); ++i) step<TileSoftmax::masked, true>(0, slack);
      }
      finish();
    }
    return repeats;
  }

  /// Computes the tiles from `i` on that this warpgroup sees, with a P V pending. It lets tiles
  /// pass that it does not see, until the next V would take the stage of the pending one.
  template <TileSoftmax kSoftmax>
  __device__ __forceinline__ void attend_turns(int& i, int count, float slack) {
    for (int passed = 0; i < count; ++i) {
      if (sees_tile()) {
        step<kSoftmax, true>(0, slack);
        passed = 0;
      } else if (++passed < Shape::kStages / 2) {
        skip_tile();
      } else {
        break;
      }
    }
  }

  /// attend() with kInTurn: narrow tiles, full ones, other partial ones. But for narrow tiles every
  /// row sees all keys of what its group sees. Returns what attend_unchecked() does.
  __device__ __forceinline__ bool attend_in_turn(const WorkTile& work) {
    const int full_end = work.narrow_tiles + work.full_tiles;
    const int count = work.partial_count + work.full_tiles;
    bool repeats = false;
    int i = attend_narrow(work);
    while (i < count) {
      if (!sees_tile()) {
        skip_tile();
        ++i;
        continue;
      }
      ++i;
      step<TileSoftmax::with_max, false>();
      release_stored();
      // The loops issue wgmma: all warps of the warpgroup must take the same one.
      if (checks) {
        attend_turns<TileSoftmax::with_max>(i, count, kCheckedSlack);
      } else {
        for (; i < full_end; ++i) step<TileSoftmax::unchecked, true>();
        attend_turns<TileSoftmax::unchecked>(i, count, kCheckedSlack);
        repeats = repeats || exceeds<T>(softmax.row_sum, softmax);
      }
      finish();
    }
    return repeats;
  }

  /// Computes all key tiles of a work tile. Deadlock hazard: a pending P V holds the stage of its
  /// V, for which the producer may be waiting before it loads the tiles to be skipped; so finish()
  /// comes before tiles are skipped. With kWatchesRowMax: a row max that moves from the second tile
  /// computed to the first full tile behind the first one means peaked scores: then all later full
  /// tiles take their maxima, as repairs would cost more. Only the work tile itself decides, so
  /// that the bits do not depend on which CTA takes it. Returns whether it is to be repeated.
  __device__ __forceinline__ bool attend(const WorkTile& work) {
    if constexpr (Shape::kInTurn) return attend_in_turn(work);
    if constexpr (Shape::kUnchecked) return attend_unchecked(work);
    constexpr bool kWatches = Shape::kWatchesRowMax;
    constexpr int kSteps = Shape::kStepsPerTile;
    const int partial = work.narrow_tiles + kSteps * (work.partial_count - work.narrow_tiles);
    const int count = partial + kSteps * work.full_tiles;
    // Where all steps are of one sub-tile, those of narrow tiles are like others.
    int i = kSteps == 1 ? attend_narrow(work) : 0;
    while (i < count) {
      if (i < partial && !sees_tile()) {
        skip_tile();
        ++i;
        continue;
      }
      const int first = i++;
      step<TileSoftmax::masked, false>(sub_tile_of(work, first));
      release_stored();
      bool grew = false;
      int watched = kWatches ? min(max(first + 2, partial + 1), count) : partial;
      if (Shape::kCapped && !computes_parts()) watched = count;
      for (; i < watched && sees_tile(); ++i) {
        grew |= step<TileSoftmax::masked, true>(sub_tile_of(work, i));
      }
      if (i >= partial && i < count) {
        // The loops issue wgmma: all warps of the warpgroup must take the same one.
        if (kWatches && ptx::named_barrier_or(warpgroup_barrier<Shape>(group), 128, grew)) {
          for (; i < count; ++i) step<TileSoftmax::with_max, true>();
        } else {
          if constexpr (Shape::kCapped && !std::is_same_v<T, __half>) {
            // Rows that have seen nothing yet: no full tile sets a row max. As near 0 as it may
            // be: what lies far below the scores, LSE adds to the log of a sum as large, and loses
            // bits.
            const float near_zero = fmaxf(lowest_row_max<T>(args.params.softcap.cap_log2), 0);
#pragma unroll
            for (float& row_max : softmax.row_max) {
              if (row_max == -INFINITY) row_max = near_zero;
            }
          }
          for (; i < count; ++i) step<TileSoftmax::without_max, true>();
        }
      }
      finish();
    }
    return false;
  }

  /// Marks empty the stage of Q that O left through, once TMA has read it: only thread 0, which
  /// issued the store, can wait for it. Called some time later, so that the wait costs nothing.
  __device__ __forceinline__ void release_stored() {
    if (stored >= 0 && (ptx::kEveryThreadArrives || thread() == 0)) {
      ptx::bulk_wait_group_read();
      ptx::mbarrier_arrive(&shared.q_empty[stored]);
    }
    stored = -1;
  }

  /// The row group's number in the cluster.
  __device__ int number() const {
    return rank * kRowGroups + group;
  }

  /// Leaves the work tile to other row groups.
  __device__ __forceinline__ void skip(const WorkTile& work) {
    for (int i = work.partial_count + work.full_tiles; i > 0; --i) skip_tile();
    // Each item is a phase, with or without an earlier O.
    if constexpr (Shape::kEarlier) {
      if (thread() == 0) ptx::mbarrier_arrive(&shared.earlier_full[item.index][group]);
    }
    release_stored();
    stored = item.index;
    // It is marked empty right away: all warps have read the work tile by then.
    if constexpr (Shape::kInTurn) ptx::named_barrier_sync(warpgroup_barrier<Shape>(group), 128);
  }

  /// Has the work tile computed again, in the second round.
  __device__ __forceinline__ void mark_repeat() {
    checks = true;
    if (thread() > 0) return;
    const auto& lists = shared.repeats;
    const typename Shape::Repeat repeat{shared.work[item.index], lists.partial_begin[item.index],
                                        lists.runs_begin[item.index]};
    for (int cta = 0; cta < Shape::kCluster; ++cta) {
      ptx::cluster_store(&shared.repeats.of_group[number()], repeat, cta);
    }
    ptx::fence_cluster();
  }

  /// Computes work tiles until there is none; in the second round, those that this row group
  /// marked.
  __device__ __forceinline__ void run(bool second_round) {
    if (Shape::kUnchecked && second_round) {
      skip({});  // what ended the first one
      item.advance();
    }
    for (;; item.advance()) {
      // The only stage of Q: that of the next work tile waits for it. At the end of the loop ptxas
      // serializes wgmma of kInTurn, and here that of others (C7511).
      if constexpr (Shape::kInTurn) release_stored();
      ptx::mbarrier_wait(&shared.q_full[item.index], item.phase);
      const WorkTile work = shared.work[item.index];
      if (work.row_begin < 0) break;
      // The vote tells the compiler that all lanes go one way.
      if (Shape::kUnchecked && second_round &&
          __any_sync(~0u, shared.repeats.group[item.index] != number())) {
        skip(work);
        continue;
      }
      load_q(item.index);
      if constexpr (Shape::kEarlier) {
        fetch_earlier<Shape>(OutputRows{args, work, group}, shared.q[item.index],
                             &shared.earlier_full[item.index][group]);
      }
#pragma unroll
      for (float& x : o) x = 0;
      softmax = SoftmaxState{};
      bool repeats = attend(work);
      release_stored();
      const OutputRows output{args, work, group};
      if constexpr (Shape::kAccumulate) {
        merge_output<Shape>(output, softmax, o);
      } else {
        if constexpr (Shape::kEarlier) {
          ptx::mbarrier_wait(&shared.earlier_full[item.index][group], item.phase);
        }
        repeats = store_output<Shape>(output, softmax, o, shared.q[item.index], repeats);
      }
      if (Shape::kUnchecked && repeats) mark_repeat();
      stored = item.index;
      if constexpr (Shape::kQueryStages == 1 && !Shape::kInTurn) release_stored();
    }
    // Shared memory must outlive the TMA stores that read it.
    if (thread() == 0) ptx::bulk_wait_group_read();
  }
};

}  // namespace longca::slice::sm90
