#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "core/rounding.h"

namespace longca::slice::sm90 {

/// Tensor maps cover [tokens, heads, dim]; a box is 64 elements wide, so that a tile takes dim / 64
/// boxes ("columns"), 128-byte swizzled. A head block is P query heads of one KV head; a work tile
/// is a query tile of a head block, which has rows of all P heads, or, with clusters of 2, a pair
/// of them: of neighbouring head blocks, or of a head block's query tiles (Tiling::row_pairs).
struct ForwardKernelArgs {
  CUtensorMap q;     ///< box: 128 / P tokens × P heads, 128 rows
  CUtensorMap k, v;  ///< box: 64 keys × 1 head, a sub-tile
  CUtensorMap o;     ///< box: 64 / P tokens × P heads, the rows of a consumer warpgroup
  ForwardParams params;
  int value_dim;   ///< of O, at most kValueDim; beyond it, and those of Q, TMA gives zeros
  int pack_shift;  ///< log2 P
  /// Head blocks, or pairs of them, per section. All work tiles of a section come before those of
  /// the next, so that its K and V stay in L2.
  int section_blocks;
  int list_work_tiles;  ///< of a list
  int work_tiles;
  CUtensorMap earlier;             ///< likewise, of the earlier O; of kEarlier alone
  CUtensorMap k_joints, v_joints;  ///< box: kJointKeys keys × 1 head; where lists have joints
};

/// A work tile as the producer hands it to the consumers, in the stage of its Q.
struct WorkTile {
  int row_begin, row_end;  ///< query tokens; row_begin < 0 ends the kernel
  int head;                ///< first of the P query heads
  int narrow_tiles;        ///< partial tiles of a single 64-key sub-tile; they come first
  int partial_count;       ///< all partial tiles
  int full_tiles;
};

/// A CTA has three warpgroups: a producer, of which one warp works, and two consumers of 64 rows
/// each. 384 threads are launched with 168 registers each (65536 / 384, rounded down to a multiple
/// of 8), which setmaxnreg redistributes: 56 + 2 · 224 = 3 · 168. With two streams it has five
/// warpgroups, 640 threads of 96 registers: 32 + 4 · 112 = 5 · 96.
template <typename Element, typename Dims, bool kAccumulate_, int kCluster_ = 1,
          bool kCapped_ = false, bool kEarlier_ = false, bool kUnchecked_ = false,
          bool kInTurn_ = false>
struct ForwardShape {
  using T = Element;
  static constexpr int kDim = Dims::kDim;            ///< of Q and K
  static constexpr int kValueDim = Dims::kValueDim;  ///< of V and O
  static constexpr bool kAccumulate = kAccumulate_;
  /// With a softcap: an instance of its own, as a branch in the others costs them registers.
  static constexpr bool kCapped = kCapped_;
  /// Whether it merges ForwardParams::earlier into what it stores: an instance of its own for the
  /// same reason.
  static constexpr bool kEarlier = kEarlier_;
  /// Whether full tiles are computed without a check of their sums, behind narrow tiles and before
  /// other partial ones; the first gives every row a row max. If the sums say behind them that a
  /// row max should have moved, the row group computes the work tile again once the CTA has no
  /// other, and lets row maxima move from then on: at most one repeat. Pays where query tiles have
  /// many full tiles; lengthens the kernel's end.
  static constexpr bool kUnchecked = kUnchecked_;
  /// For lists in which each row group has partial tiles that it alone sees, in turn
  /// (DeviceTileLists::in_turn). A row group lets those of the other one pass while its P V is
  /// pending, which takes more key tiles in flight, and so the room of a stage of Q.
  static constexpr bool kInTurn = kInTurn_;
  /// CTAs per cluster, 1 or 2. Two compute a query tile each with the same key tiles: the same one
  /// for neighbouring head blocks of a KV head, or a pair of a head block's. Each loads one
  /// sub-tile of every key tile and multicasts it, which halves L2 reads.
  static constexpr int kCluster = kCluster_;
  /// Work tiles that a CTA computes at a time, each in a stream: a producer warp, two consumers,
  /// shared memory and named barriers of its own. At 64 dimensions exponentials take as long as the
  /// products, and two warpgroups do not fill the one with the other; four do.
  static constexpr int kStreams = kDim == 64 ? 2 : 1;
  static_assert(kStreams * kCluster <= 2);
  /// Whether lists may have joints: for masks with block lists, by CTAs on their own.
  static constexpr bool kJoins = kUnchecked && kCluster == 1 && !kInTurn;
  static constexpr int kTileM = kRowGroups * kGroupRows;
  static constexpr int kThreads = 128 * (1 + kStreams * kRowGroups);
  static constexpr int kConsumerWarps = 8;  ///< of a stream
  static constexpr int kProducerRegisters = kStreams == 1 ? 56 : 32;
  static constexpr int kConsumerRegisters = kStreams == 1 ? 224 : 112;
  /// Whether a work tile with peaked scores takes the maximum of every tile
  /// (ForwardConsumer::attend): in float16, where max_tile_sum leaves little room and repairs would
  /// be frequent. Not with a softcap, which takes the registers that the second loop needs, nor at
  /// 64 dimensions, where a thread has half of the registers.
  static constexpr bool kWatchesRowMax =
      std::is_same_v<Element, __half> && !kCapped && kStreams == 1 && kDim <= 128;
  /// Above 128 dimensions, and with two streams, Q would take too many registers: it is read from
  /// shared memory, which above 128 has room for one work tile's. So it is with a softcap: with few
  /// registers left ptxas computes one polynomial after the other, each at its latency.
  static constexpr bool kQueriesInRegisters = kStreams == 1 && kDim <= 128 && !kCapped;
  static constexpr int kQueryStages = kDim <= 128 && !kInTurn ? 2 : 1;
  static_assert(!kUnchecked ||
                (kQueriesInRegisters && !kAccumulate && !std::is_same_v<Element, __half>));
  static_assert(!kInTurn || (kUnchecked && kCluster == 1 && !kEarlier));
  /// Keys that a step of the consumers computes. Where O takes 128 registers, or a thread has 112,
  /// there is room for the scores of one sub-tile: the two of a key tile are then two steps.
  static constexpr int kStepKeys = kValueDim > 128 || kStreams > 1 ? kSubTileKeys : kTileKeys;
  static constexpr int kStepsPerTile = kTileKeys / kStepKeys;
  /// K and V tiles in flight, of a step's keys each: two steps, with two streams four, as steps are
  /// half as long. Five stages were no faster at 128 dimensions; at 256, where a step is short,
  /// they are by 2 to 5 %.
  static constexpr int kStages = kStreams > 1 ? 8 : kInTurn ? 6 : kValueDim > 128 ? 5 : 4;
  /// Whether K of a step is loaded before V of the step before: consumers issue S before the P V
  /// that runs beside it, and so wait for them in this order. With an odd number of stages the next
  /// K would take that of a V which is still in use.
  static constexpr bool kKeysAhead = kStages % 2 == 0;
  /// Stages that have room for intervals: where shared memory is short, those of K alone.
  static constexpr int kPatternStages = kInTurn ? kStages / 2 : kStages;
  __device__ __forceinline__ static int pattern_stage(int stage) {
    return kInTurn ? stage / 2 : stage;
  }
  /// Columns of 64 elements. TMA fills the last one with zeros beyond the dimensions, unread.
  static constexpr int kColumns = ceil_div(kDim, 64);
  static constexpr int kValueColumns = ceil_div(kValueDim, 64);
  static constexpr int kRowColumnBytes = kTileM * 128;
  static constexpr int kKeyColumnBytes = kStepKeys * 128;
  static constexpr int kQueryBytes = kColumns * kRowColumnBytes;
  static constexpr int kKeyBytes = kColumns * kKeyColumnBytes;
  static constexpr int kValueBytes = kValueColumns * kKeyColumnBytes;

  /// A work tile that a row group is to compute again.
  struct Repeat {
    WorkTile work;                  ///< row_begin < 0: none
    int partial_begin, runs_begin;  ///< as in QueryTile
  };
  struct Repeats {
    int partial_begin[kQueryStages], runs_begin[kQueryStages];  ///< of `work`
    int group[kQueryStages];  ///< in the second round: the row group that computes `work`
    /// Row group g of CTA r is number kRowGroups · r + g. Ordered by the barrier between rounds.
    Repeat of_group[kCluster * kRowGroups];
  };

  /// Tiles are columns of 64 elements, 128-byte swizzled. For each barrier: who arrives, how often
  /// per phase. A full barrier also counts TMA's bytes; parities are those of PipelineState.
  struct Shared {
    /// Q: stages of [128, kDim]. O overwrites its Q here on the way to device memory.
    alignas(1024) unsigned char q[kQueryStages][kQueryBytes];
    /// K, V, K, V, …: [kStepKeys, kDim] and [kStepKeys, kValueDim] (ForwardShape::stage), whatever
    /// the order in which they are loaded.
    alignas(1024) unsigned char kv[kStages * (kKeyBytes + kValueBytes) / 2];
    /// Per row group, for the K tile in a stage: the pattern's intervals (pattern_stage), one per
    /// token, and its index, kFull or kNone. Not set in stages with a V tile.
    alignas(128) RowIntervals intervals[kPatternStages][kRowGroups][kGroupRows];
    int pattern[kStages][kRowGroups];
    WorkTile work[kQueryStages];
    /// Guard q and work. Full: once, the producer. Empty: thread 0 of each consumer warpgroup, once
    /// its Q has been read and TMA has read its O.
    std::uint64_t q_full[kQueryStages], q_empty[kQueryStages];
    /// Guard kv, intervals and pattern. Full: once, the producer of this CTA; half of the bytes are
    /// multicast by the other CTA of a cluster. Empty: every consumer warp of the cluster, since
    /// what this CTA loads overwrites the stage in both.
    std::uint64_t full[kStages], empty[kStages];
    int work_index;  ///< CTA 0 of the cluster sends the next one to CTA 1
    /// Guard work_index, in clusters. Full, in CTA 1: once, its own producer, and four bytes from
    /// CTA 0. Empty, in CTA 0: once, the producer of CTA 1.
    std::uint64_t work_full, work_empty;
    /// Where the earlier O has come to a row group's part of a stage of Q. Full: once, thread 0 of
    /// the warpgroup, with TMA's bytes. Of kEarlier alone.
    std::uint64_t earlier_full[kQueryStages][kRowGroups];
    Repeats repeats;  ///< of kUnchecked alone
  };

  /// Where a stage of Shared::kv begins: K in even ones, V in odd ones, or either where they are of
  /// one size.
  __device__ __forceinline__ static unsigned char* stage(Shared& shared, int index) {
    static_assert(kStages % 2 == 0 || kKeyBytes == kValueBytes);
    if constexpr (kKeyBytes == kValueBytes) return shared.kv + index * kKeyBytes;
    return shared.kv + index / 2 * (kKeyBytes + kValueBytes) + index % 2 * kKeyBytes;
  }
};

/// The named barrier of the 128 threads of this consumer warpgroup, `group` of its stream; id 0 is
/// __syncthreads. With one stream it is derived from `group`: another value would do, but then the
/// loops get other registers than those that were measured (forward_kernel).
template <typename Shape>
__device__ __forceinline__ int warpgroup_barrier(int group) {
  return Shape::kStreams == 1 ? 1 + group : static_cast<int>(threadIdx.x / 128);
}

}  // namespace longca::slice::sm90
