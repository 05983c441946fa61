#pragma once

#include "attention/kernels/slice/sm90/output.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/wgmma.cuh"
#include "attention/kernels/slice/sm90/shape.cuh"
#include "attention/kernels/slice/sm90/softmax.cuh"

namespace longca::slice::sm90 {

/// A consumer: a warpgroup that computes 64 rows. While the products of a key tile with V run, the
/// scores of the next are exponentiated.
template <typename Shape>
struct Consumer {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;

  const ForwardArgs& args;
  Shared& shared;
  const int group;
  const int rank;
  const float scale_log2;
  RingPosition<Shape::kSlots> ring{};
  int v_slot = 0;  ///< of the tile whose probabilities are still to be multiplied
  std::uint32_t v_parity = 0;
  int stored = -1;                 ///< the buffer of Q from which O is being stored
  std::uint32_t q[kDim / 4];       ///< an operand in registers, which spares shared memory a fifth
  float s[kTileKeys / 2];          ///< scores, then probabilities
  std::uint32_t p[kTileKeys / 4];  ///< probabilities as an operand
  float o[kDim / 2];
  RowStates rows;

  __device__ static int thread() { return static_cast<int>(threadIdx.x & 127); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x & 31); }

  /// Of the slot, every warp has read what it needs.
  __device__ void release(int slot) {
    __syncwarp();
    if (lane() == 0) ptx::barrier_arrive(&shared.empty[slot]);
    if (Shape::kCluster > 1 && lane() == 1) ptx::cluster_arrive(&shared.empty[slot], rank ^ 1);
  }

  __device__ __forceinline__ void load_q(int buffer) {
    const unsigned char* from = shared.q[buffer] + group * (kGroupRows * 128);
    const int row = thread() / 32 * 16 + lane() % 16;
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int chunk = step % 4 * 2 + lane() / 16;
      ptx::load_matrices(q + 4 * step, ptx::shared_address(from + step / 4 * Shape::kColumnBytes +
                                                           row * 128 + (chunk ^ (row & 7)) * 16));
    }
  }

  /// s = q · kᵀ
  template <int kKeys>
  __device__ __forceinline__ void queue_scores(int slot) {
    const std::uint64_t k = ptx::operand(ptx::shared_address(shared.ring[slot]), 16);
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int offset = (step / 4 * Shape::kColumnBytes + step % 4 * 32) / 16;
      if constexpr (kKeys == kHalfKeys) {
        step == 0 ? ptx::multiply_half<T, false>(s, q, k)
                  : ptx::multiply_half<T, true>(s, q + 4 * step, k + offset);
      } else {
        step == 0 ? ptx::multiply<T, false>(s, q, k)
                  : ptx::multiply<T, true>(s, q + 4 * step, k + offset);
      }
    }
    ptx::products_commit();
  }

  /// o += p · v
  template <int kKeys>
  __device__ __forceinline__ void queue_values(int slot) {
    const std::uint64_t v =
        ptx::operand(ptx::shared_address(shared.ring[slot]), Shape::kColumnBytes);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      ptx::multiply_add<T>(o, p + 4 * step, v + step * (16 * 128 / 16));
    }
    ptx::products_commit();
  }

  /// What this group sees of the listed tile in `slot`, with its rows' intervals if in part.
  struct Word {
    int pattern;
    RowIntervals low, high;
  };
  __device__ __forceinline__ Word listed_word(int slot) const {
    Word word{shared.pattern[slot][group], {}, {}};
    if (word.pattern >= 0) {
      const int row = thread() / 32 * 16 + lane() / 4;
      word.low = shared.intervals[slot][group][row >> args.pack_shift];
      word.high = shared.intervals[slot][group][(row + 8) >> args.pack_shift];
    }
    return word;
  }

  /// s to probabilities in p.
  template <int kKeys>
  __device__ __forceinline__ void pack_probabilities() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
  }

  /// Both groups take one turn for each full tile, group 0 first.
  __device__ static int turn_barrier(int of_group) {
    return 1 + kRowGroups + of_group;
  }
  __device__ __forceinline__ void wait_turn() {
    if constexpr (Shape::kTurns) ptx::named_sync(turn_barrier(group), 256);
  }
  __device__ __forceinline__ void pass_turn() {
    if constexpr (Shape::kTurns) ptx::named_arrive(turn_barrier(group ^ 1), 256);
  }

  /// The scores of the tile at `ring` to probabilities, whose products with V are then pending; if
  /// kPending, those of the tile before run meanwhile. full_tile: it is not a listed one.
  template <bool kMasked, bool kPending>
  __device__ __forceinline__ void step(bool full_tile) {
    const int k_slot = ring.slot;
    if constexpr (kPending) ptx::barrier_wait(&shared.full[v_slot], v_parity);
    ptx::barrier_wait(&shared.full[k_slot], ring.parity);
    ptx::pin(s);
    ptx::pin(o);
    if constexpr (kPending) ptx::pin(p);
    if (full_tile) wait_turn();
    ptx::products_begin();
    queue_scores<kTileKeys>(k_slot);
    if constexpr (kPending) queue_values<kTileKeys>(v_slot);
    if (full_tile) pass_turn();
    Word word{kFull, {}, {}};
    if constexpr (kMasked) word = listed_word(k_slot);
    ptx::products_wait<kPending ? 1 : 0>();
    ptx::pin(s);
    release(k_slot);
    if constexpr (kMasked) {
      if (word.pattern >= 0) mask_scores<kTileKeys>(s, word.low, word.high);
    }
    float factor[2];
    bool grew;
    if constexpr (kMasked) {
      grew = exponentiate<kTileKeys>(s, rows, scale_log2, factor);
    } else {
      refer_scores(s, rows, scale_log2);
      ptx::pin(s);
    }
    if constexpr (kPending) {
      ptx::products_wait<0>();
      ptx::pin(o);
      release(v_slot);
    }
    if constexpr (kMasked) {
      pack_probabilities<kTileKeys>();
    } else {
      grew = exponentiate_seen<T>(s, p, rows, factor);
    }
    if (grew) scale_output(o, factor);
    ring.advance();
    v_slot = ring.slot;
    v_parity = ring.parity;
    ring.advance();
  }

  /// A listed tile of one half, from scores to O. Nothing is pending before it or after.
  __device__ __forceinline__ void single_step() {
    const int k_slot = ring.slot;
    ptx::pin(s);
    ptx::products_begin();
    queue_scores<kHalfKeys>(k_slot);
    const Word word = listed_word(k_slot);
    ptx::products_wait<0>();
    ptx::pin(s);
    release(k_slot);
    if (word.pattern >= 0) mask_scores<kHalfKeys>(s, word.low, word.high);
    float factor[2];
    if (exponentiate<kHalfKeys>(s, rows, scale_log2, factor)) scale_output(o, factor);
    pack_probabilities<kHalfKeys>();
    ring.advance();
    ptx::barrier_wait(&shared.full[ring.slot], ring.parity);
    ptx::pin(o);
    ptx::pin(p);
    ptx::products_begin();
    queue_values<kHalfKeys>(ring.slot);
    ptx::products_wait<0>();
    ptx::pin(o);
    release(ring.slot);
    ring.advance();
  }

  /// The pending products with V.
  __device__ __forceinline__ void finish() {
    ptx::barrier_wait(&shared.full[v_slot], v_parity);
    ptx::pin(o);
    ptx::pin(p);
    ptx::products_begin();
    queue_values<kTileKeys>(v_slot);
    ptx::products_wait<0>();
    ptx::pin(o);
    release(v_slot);
  }

  /// Is the listed tile at `ring` of use to this group?
  __device__ __forceinline__ bool sees_tile() {
    ptx::barrier_wait(&shared.full[ring.slot], ring.parity);
    return shared.pattern[ring.slot][group] != kNone;
  }
  /// If not, its K and V are released; not before they came, or the phases would lose count.
  __device__ __forceinline__ void leave_tile() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::barrier_wait(&shared.full[ring.slot], ring.parity);
      release(ring.slot);
      ring.advance();
    }
  }

  /// All key tiles of an item. Nothing is pending while tiles are left behind: the slot of pending
  /// V might be the one that the producer waits for.
  __device__ __forceinline__ void attend(const Work& work) {
    const int listed = work.listed_count;
    const int count = listed + work.full_tiles;
    int i = 0;
    for (; i < work.singles; ++i) {
      sees_tile() ? single_step() : leave_tile();
      release_stored();
    }
    while (i < count) {
      if (i < listed && !sees_tile()) {
        leave_tile();
        ++i;
        continue;
      }
      step<true, false>(i >= listed);
      release_stored();
      ++i;
      for (; i < listed && sees_tile(); ++i) step<true, true>(false);
      if (i >= listed) {
        for (; i < count; ++i) step<false, true>(true);
      }
      finish();
    }
  }

  /// Gives the buffer that O left through back to the producer, well after the store was queued.
  __device__ __forceinline__ void release_stored() {
    if (stored >= 0 && thread() == 0) {
      ptx::wait_stores_read();
      ptx::barrier_arrive(&shared.q_empty[stored]);
    }
    stored = -1;
  }

  __device__ __forceinline__ void run() {
    if (group == 1) pass_turn();
    for (RingPosition<2> item;; item.advance()) {
      ptx::barrier_wait(&shared.q_full[item.slot], item.parity);
      const Work work = shared.work[item.slot];
      if (work.row_begin < 0) break;
      load_q(item.slot);
#pragma unroll
      for (float& x : o) x = 0;
      rows = RowStates{};
      attend(work);
      release_stored();
      const OutputRows output{args, work, group};
      if constexpr (Shape::kAccumulate) {
        merge_output<Shape>(output, rows, o);
      } else {
        store_output<Shape>(output, rows, o, shared.q[item.slot]);
      }
      stored = item.slot;
    }
    if (thread() == 0) ptx::wait_stores_read();
  }
};

}  // namespace longca::slice::sm90
