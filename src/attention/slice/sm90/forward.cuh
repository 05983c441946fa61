#pragma once

#include <cuda.h>

#include <cstdint>

#include "attention/slice/launch.h"
#include "attention/slice/sm90/ptx/barrier.cuh"
#include "attention/slice/sm90/ptx/tma.cuh"
#include "attention/slice/sm90/ptx/wgmma.cuh"

#ifndef SLICE_PINGPONG
#define SLICE_PINGPONG 1
#endif
#ifndef SLICE_LAZY
#define SLICE_LAZY 1
#endif
#ifndef SLICE_EARLY
#define SLICE_EARLY 1
#endif
#ifndef SLICE_SLOTS
#define SLICE_SLOTS 4
#endif

namespace longca::slice::sm90 {

/// What the kernel is launched with: tensor maps over [tokens, heads, dim] whose boxes are 64
/// elements wide, and how work is numbered.
struct ForwardArgs {
  CUtensorMap q;     ///< box of P heads × 128 / P tokens
  CUtensorMap k, v;  ///< box of a half
  CUtensorMap o;     ///< box of P heads × 64 / P tokens
  ForwardParams params;
  int pack_shift;  ///< log2 P
  /// Items of one tile in a row, of as many head blocks (or pairs): their K and V stay in L2.
  int section_items;
  int work_items;
};

/// What a work group computes next, as the producer tells the consumers.
struct Work {
  int row_begin, row_end;  ///< row_begin < 0: nothing, the kernel is over
  int head;                ///< first of the P query heads
  int listed_count, full_tiles;
};

template <typename Element, int kDim_, int kCluster_>
struct ForwardShape {
  using T = Element;
  /// Work groups that compute the same tile for neighbouring head blocks of a KV head. Each loads
  /// its share of K and V for all.
  static constexpr int kCluster = kCluster_;
  static constexpr int kDim = kDim_;
  static constexpr int kTileM = 128;
  static constexpr int kTileN = kTileKeys;
  static constexpr int kSlots = kDim == 128 ? SLICE_SLOTS : 10;
  static constexpr int kThreads = 384;
  static constexpr int kConsumerWarps = 8;
  /// A tile of 128 rows or keys lies in shared memory as columns of 64 elements.
  static constexpr int kColumns = kDim / 64;
  static constexpr int kColumnBytes = 128 * 64 * 2;
  static constexpr int kTileBytes = kColumns * kColumnBytes;

  struct Shared {
    alignas(1024) unsigned char q[2][kTileBytes];          ///< also O on its way out
    alignas(1024) unsigned char ring[kSlots][kTileBytes];  ///< K, V, K, V, … of the key tiles
    alignas(128) RowIntervals intervals[kSlots][kRowGroups][kGroupRows];
    int pattern[kSlots][kRowGroups];
    Work work[2];
    std::uint64_t q_full[2], q_empty[2];
    std::uint64_t full[kSlots], empty[kSlots];
    int item;  ///< the next, from rank 0
    std::uint64_t item_full, item_empty;
  };
};

/// Where one is in a ring of kCount buffers: parity is that of the passes so far.
template <int kCount>
struct RingPosition {
  int slot = 0;
  std::uint32_t parity = 0;

  __device__ void advance() {
    if (++slot == kCount) {
      slot = 0;
      parity ^= 1;
    }
  }
};

// ---------------------------------------------------------------------------------------------
// The producer: one warp that fetches work and keeps the copy engine busy.

/// The work items in turn, longest first within a section. Fetching the next one takes three
/// dependent reads: advance() does one at a time, between copies.
template <typename Shape>
struct WorkQueue {
  const ForwardArgs& args;
  typename Shape::Shared& shared;
  const int rank;
  int stage = 0;
  std::uint32_t parity = 0;  ///< of the items fetched
  int item = 0, head = 0;
  const QueryTile* tiles = nullptr;  ///< of the head's list
  int tile = 0;
  int word = 0;  ///< lane l: word l of the query tile

  /// Rank 0 takes an item; the others hear of it.
  __device__ void share_item() {
    if constexpr (Shape::kCluster > 1) {
      const bool leads = (threadIdx.x & 31) == 0;
      if (rank == 0) {
        ptx::barrier_wait(&shared.item_empty, parity ^ 1);
        if (leads) ptx::cluster_store(&shared.item, item, &shared.item_full, 1);
      } else {
        if (leads) ptx::barrier_arrive_expect(&shared.item_full, sizeof(int));
        ptx::barrier_wait(&shared.item_full, parity);
        item = shared.item;
        __syncwarp();
        if (leads) ptx::cluster_barrier_arrive(&shared.item_empty, 0);
      }
      parity ^= 1;
    }
  }

  __device__ void advance() {
    const DeviceTileLists& lists = args.params.lists;
    const int lane = threadIdx.x & 31;
    if (stage == 0) {
      if (rank == 0 && lane == 0) item = atomicAdd(args.params.work_counter, 1);
    } else if (stage == 1) {
      item = __shfl_sync(~0u, item, 0);
      share_item();
      if (item < args.work_items) {
        const int section = lists.tiles_per_list * args.section_items;
        const int rest = item % section;
        const int block = item / section * args.section_items + rest % args.section_items;
        head = (block * Shape::kCluster + rank) << args.pack_shift;
        const std::int64_t first =
            static_cast<std::int64_t>(head * lists.list_heads / args.params.heads_q) *
            lists.tiles_per_list;
        tiles = lists.tiles + first;
        tile = lists.order[first + rest / args.section_items];
      }
    } else if (stage == 2) {
      if (item < args.work_items && lane < 8)
        word = reinterpret_cast<const int*>(tiles + tile)[lane];
    }
    ++stage;
  }

  /// False if there is no more.
  __device__ bool next(QueryTile& result) {
    while (stage < 3) advance();
    stage = 0;
    if (item >= args.work_items) return false;
    result.row_begin = __shfl_sync(~0u, word, 0);
    result.row_end = __shfl_sync(~0u, word, 1);
    result.listed_begin = __shfl_sync(~0u, word, 2);
    result.listed_count = __shfl_sync(~0u, word, 3);
    result.runs_begin = __shfl_sync(~0u, word, 4);
    result.full_tiles = __shfl_sync(~0u, word, 5);
    return true;
  }
};

template <typename Shape>
struct Producer {
  using Shared = typename Shape::Shared;
  const ForwardArgs& args;
  Shared& shared;
  const int rank;
  RingPosition<Shape::kSlots> ring{};
  int kv_head = 0;

  __device__ bool leads() const { return (threadIdx.x & 31) == 0; }

  __device__ void load_q(int buffer, std::uint32_t parity, const QueryTile& tile, int head) {
    ptx::barrier_wait(&shared.q_empty[buffer], parity);
    if (leads()) {
      shared.work[buffer] = {tile.row_begin, tile.row_end, head, tile.listed_count,
                             tile.full_tiles};
      ptx::barrier_arrive_expect(&shared.q_full[buffer], Shape::kTileBytes);
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.q[buffer] + column * Shape::kColumnBytes, &args.q,
                      &shared.q_full[buffer], column * 64, head, tile.row_begin);
      }
    }
  }

  __device__ void load_halves(const CUtensorMap& map, int k0, int k1) {
    std::uint64_t* full = &shared.full[ring.slot];
#pragma unroll
    for (int column = 0; column < Shape::kColumns; ++column) {
      unsigned char* to = shared.ring[ring.slot] + column * Shape::kColumnBytes;
      if constexpr (Shape::kCluster == 1) {
        ptx::load_box(to, &map, full, column * 64, kv_head, k0);
        ptx::load_box(to + Shape::kColumnBytes / 2, &map, full, column * 64, kv_head, k1);
      } else {  // a half each
        ptx::load_box(to + rank * (Shape::kColumnBytes / 2), &map, full, column * 64, kv_head,
                      rank == 0 ? k0 : k1, 3);
      }
    }
  }

  /// Keys k0… and k1… into the next two slots. An absent half comes from behind the end of K: as
  /// zeros, for what the slot held before might be no numbers.
  __device__ void load_key_tile(int k0, int k1, int pattern0, int pattern1) {
    if (k1 == kAbsent) k1 = args.params.tokens_k;
    ptx::barrier_wait(&shared.empty[ring.slot], ring.parity ^ 1);
    if (leads()) {
      const int slot = ring.slot;
      const int group_tokens = kGroupRows >> args.pack_shift;
      const int pattern_bytes = group_tokens * static_cast<int>(sizeof(RowIntervals));
      shared.pattern[slot][0] = pattern0;
      shared.pattern[slot][1] = pattern1;
      ptx::barrier_arrive_expect(
          &shared.full[slot],
          Shape::kTileBytes + ((pattern0 >= 0) + (pattern1 >= 0)) * pattern_bytes);
      load_halves(args.k, k0, k1);
      const RowIntervals* patterns = args.params.lists.patterns;
      if (pattern0 >= 0) {
        ptx::load_bytes(shared.intervals[slot][0],
                        patterns + static_cast<std::int64_t>(pattern0) * group_tokens,
                        pattern_bytes, &shared.full[slot]);
      }
      if (pattern1 >= 0) {
        ptx::load_bytes(shared.intervals[slot][1],
                        patterns + static_cast<std::int64_t>(pattern1) * group_tokens,
                        pattern_bytes, &shared.full[slot]);
      }
    }
    ring.advance();
    ptx::barrier_wait(&shared.empty[ring.slot], ring.parity ^ 1);
    if (leads()) {
      ptx::barrier_arrive_expect(&shared.full[ring.slot], Shape::kTileBytes);
      load_halves(args.v, k0, k1);
    }
    ring.advance();
  }

  __device__ void run() {
    constexpr int kFetchAhead = 4;  // key tiles before the end of a work item
    const DeviceTileLists& lists = args.params.lists;
    const int group = args.params.heads_q / args.params.heads_k;
    const int lane = threadIdx.x & 31;
    WorkQueue<Shape> queue{args, shared, rank};
    QueryTile tile;
    RingPosition<2> q;
    for (; queue.next(tile); q.advance()) {
      const int head = queue.head;
      kv_head = head / group;
      load_q(q.slot, q.parity ^ 1, tile, head);
      const int last = tile.listed_count + tile.full_tiles;
      for (int begin = 0; begin < tile.listed_count; begin += 32) {
        const int count = min(32, tile.listed_count - begin);
        int4 mine{};
        if (lane < count) {
          mine = reinterpret_cast<const int4*>(lists.listed)[tile.listed_begin + begin + lane];
        }
        for (int i = 0; i < count; ++i) {
          load_key_tile(__shfl_sync(~0u, mine.x, i), __shfl_sync(~0u, mine.y, i),
                        __shfl_sync(~0u, mine.z, i), __shfl_sync(~0u, mine.w, i));
          if (begin + i + kFetchAhead >= last && queue.stage < 3) queue.advance();
        }
      }
      const FullRun* run = lists.runs + tile.runs_begin;
      FullRun next = tile.full_tiles > 0 ? *run : FullRun{};
      int key = 0, left = 0, ahead = 2 * tile.full_tiles;  // halves: of the run, of the tile
      const auto next_half = [&] {
        if (left == 0) {
          key = next.k_begin;
          left = next.halves;
          ahead -= left;
          if (ahead > 0) next = *++run;
        }
        --left;
        key += kHalfKeys;
        return key - kHalfKeys;
      };
      for (int i = 0; i < tile.full_tiles; ++i) {
        const int k0 = next_half();
        const int k1 = next_half();
        load_key_tile(k0, k1, kFull, kFull);
        if (tile.listed_count + i + kFetchAhead >= last && queue.stage < 3) queue.advance();
      }
    }
    ptx::barrier_wait(&shared.q_empty[q.slot], q.parity ^ 1);
    if (leads()) {
      shared.work[q.slot].row_begin = -1;
      ptx::barrier_arrive(&shared.q_full[q.slot]);
      // The last work group leaves the counters as they were found.
      __threadfence();
      if (rank == 0 && atomicAdd(args.params.work_counter + 1, 1) ==
                           static_cast<int>(gridDim.x) / Shape::kCluster - 1) {
        args.params.work_counter[0] = 0;
        args.params.work_counter[1] = 0;
      }
    }
  }
};

// ---------------------------------------------------------------------------------------------
// A consumer: a warpgroup that computes 64 rows.

/// Bit 2 n + i: does [lo, hi) ∪ … hold column 8 n + 2 (lane % 4) + i?
__device__ __forceinline__ std::uint32_t column_bits(RowIntervals intervals) {
  const int offset = 2 * static_cast<int>(threadIdx.x & 3);
  const auto below = [offset](std::uint32_t column) {
    const int in_eight = static_cast<int>(column & 7) - offset;
    return ptx::shift_left(
        ~0u, (column >> 3) * 2 + static_cast<std::uint32_t>(min(max(in_eight, 0), 2)));
  };
  return (below(intervals.lo0) & ~below(intervals.hi0)) |
         (below(intervals.lo1) & ~below(intervals.hi1));
}

template <typename Shape>
struct Consumer {
  using T = typename Shape::T;
  using Shared = typename Shape::Shared;
  static constexpr int kDim = Shape::kDim;
  /// An old maximum serves until a score exceeds it by this power of two: P stays below 2⁸.
  static constexpr float kSlack = SLICE_LAZY ? 8.0f : 0.0f;

  const ForwardArgs& args;
  Shared& shared;
  const int group;
  const int rank;
  const float scale_log2;
  int stored = -1;  ///< the buffer of Q from which O is being stored
  RingPosition<Shape::kSlots> ring{};
  std::uint64_t q_operand = 0;
  int v_slot = 0;  ///< of the tile whose P is still to be multiplied
  std::uint32_t v_parity = 0;
  float o[kDim / 2];
  float s[kTileKeys / 2];          ///< scores, then probabilities
  std::uint32_t p[kTileKeys / 4];  ///< probabilities as an operand
  float row_max[2], row_sum[2];    ///< of rows l / 4 and l / 4 + 8; sums of this thread's columns

  __device__ bool leads_warp() const { return (threadIdx.x & 31) == 0; }
  __device__ int thread() const { return static_cast<int>(threadIdx.x & 127); }

  __device__ void release(int slot) {
    __syncwarp();
    if (leads_warp()) ptx::barrier_arrive(&shared.empty[slot]);
    if (Shape::kCluster > 1 && (threadIdx.x & 31) == 1) {
      ptx::cluster_barrier_arrive(&shared.empty[slot], rank ^ 1);
    }
  }

  // The two warpgroups take turns in queueing products, so that one's softmax runs beside the
  // other's products. Each takes one turn per key tile, whether it computes it or not.
  __device__ void take_turn() {
    if constexpr (SLICE_PINGPONG) ptx::named_sync(1 + group, 256);
  }
  __device__ void pass_turn() {
    if constexpr (SLICE_PINGPONG) ptx::named_arrive(2 - group, 256);
  }

  /// s = q · kᵀ
  __device__ __forceinline__ void queue_scores(int slot) {
    const std::uint64_t k = ptx::operand(ptx::shared_address(shared.ring[slot]), 16);
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      const int offset = (step / 4 * Shape::kColumnBytes + step % 4 * 32) / 16;
      if (step == 0) {
        ptx::multiply<T, false>(s, q_operand, k);
      } else {
        ptx::multiply<T, true>(s, q_operand + offset, k + offset);
      }
    }
    ptx::products_commit();
  }

  /// o += p · v
  __device__ __forceinline__ void queue_values(int slot) {
    const std::uint64_t v =
        ptx::operand(ptx::shared_address(shared.ring[slot]), Shape::kColumnBytes);
#pragma unroll
    for (int step = 0; step < kTileKeys / 16; ++step) {
      ptx::multiply_add<T>(o, p + 4 * step, v + step * (16 * 128 / 16));
    }
    ptx::products_commit();
  }

  /// −∞ for the scores of columns that the intervals do not hold.
  __device__ __forceinline__ void mask_scores(RowIntervals low, RowIntervals high) {
    const std::uint32_t low_bits = column_bits(low);
    const std::uint32_t high_bits = column_bits(high);
#pragma unroll
    for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!(low_bits & (1u << (2 * n + i)))) s[4 * n + i] = -INFINITY;
        if (!(high_bits & (1u << (2 * n + i)))) s[4 * n + 2 + i] = -INFINITY;
      }
    }
  }

  /// Scores to probabilities; the maxima may grow, and then factor[·] is what older sums are to be
  /// multiplied by. True if so.
  template <bool kMasked>
  __device__ __forceinline__ bool exponentiate(float (&factor)[2]) {
    float tile_max[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float most = fmaxf(s[2 * r], s[2 * r + 1]);
#pragma unroll
      for (int n = 1; n < kTileKeys / 8; ++n) {
        most = fmaxf(most, fmaxf(s[4 * n + 2 * r], s[4 * n + 2 * r + 1]));
      }
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      tile_max[r] = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
    }
    // From −∞ any score is growth; −∞ − −∞ is not.
    const bool grows = (tile_max[0] - row_max[0]) * scale_log2 > kSlack ||
                       (tile_max[1] - row_max[1]) * scale_log2 > kSlack;
    const bool warp_grows = SLICE_LAZY ? __any_sync(~0u, grows) : true;
    if (warp_grows) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float before = row_max[r];
        row_max[r] = fmaxf(before, tile_max[r]);
        const float base = kMasked && row_max[r] == -INFINITY ? 0.0f : row_max[r] * scale_log2;
        factor[r] = ptx::exp2(before * scale_log2 - base);
        row_sum[r] *= factor[r];
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float base = kMasked && row_max[r] == -INFINITY ? 0.0f : row_max[r] * scale_log2;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kTileKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float& x = s[4 * n + 2 * r + i];
          x = ptx::exp2(fmaf(x, scale_log2, -base));
          sum += x;
        }
      }
      row_sum[r] += sum;
    }
    return warp_grows;
  }

  __device__ __forceinline__ void scale_output(const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) o[i] *= factor[i / 2 % 2];
  }

  __device__ __forceinline__ void pack_probabilities() {
#pragma unroll
    for (int i = 0; i < kTileKeys / 4; ++i) p[i] = ptx::pack<T>(s[2 * i], s[2 * i + 1]);
  }

  /// The scores of the tile at `ring` to probabilities; with kPending, the products of the tile
  /// before with V run meanwhile. Leaves this tile's p pending.
  template <bool kMasked, bool kPending>
  __device__ __forceinline__ void step() {
    const int k_slot = ring.slot;
    if constexpr (kPending) ptx::barrier_wait(&shared.full[v_slot], v_parity);
    ptx::barrier_wait(&shared.full[k_slot], ring.parity);
    take_turn();
    ptx::pin(s);
    ptx::pin(o);
    if constexpr (kPending) ptx::pin(p);
    ptx::products_begin();
    queue_scores(k_slot);
    if constexpr (kPending) queue_values(v_slot);
    pass_turn();
    int pattern = kFull;
    RowIntervals low, high;
    if constexpr (kMasked) {
      pattern = shared.pattern[k_slot][group];
      if (pattern >= 0) {
        const int row = thread() / 32 * 16 + (thread() & 31) / 4;
        low = shared.intervals[k_slot][group][row >> args.pack_shift];
        high = shared.intervals[k_slot][group][(row + 8) >> args.pack_shift];
      }
    }
    ptx::products_wait<kPending ? 1 : 0>();
    ptx::pin(s);
    release(k_slot);
    if constexpr (kMasked) {
      if (pattern >= 0) mask_scores(low, high);
    }
    float factor[2];
    const bool grew = exponentiate<kMasked>(factor);
    if constexpr (kPending) {
#if SLICE_EARLY
      // Never so; it keeps the compiler from waiting before the exponentials.
      if (row_sum[0] + row_sum[1] < 0) __nanosleep(1);
#endif
      ptx::products_wait<0>();
      ptx::pin(o);
      release(v_slot);
    }
    if (grew) scale_output(factor);
    pack_probabilities();
    ring.advance();
    v_slot = ring.slot;
    v_parity = ring.parity;
    ring.advance();
  }

  /// The pending products with V.
  __device__ __forceinline__ void finish() {
    ptx::barrier_wait(&shared.full[v_slot], v_parity);
    ptx::pin(o);
    ptx::pin(p);
    ptx::products_begin();
    queue_values(v_slot);
    ptx::products_wait<0>();
    ptx::pin(o);
    release(v_slot);
  }

  /// Is the listed tile at `ring` of use to this group? If not, it is left behind.
  __device__ __forceinline__ bool sees_tile() {
    ptx::barrier_wait(&shared.full[ring.slot], ring.parity);
    return shared.pattern[ring.slot][group] != kNone;
  }
  __device__ __forceinline__ void leave_tile() {
    take_turn();
    pass_turn();
#pragma unroll
    for (int i = 0; i < 2; ++i) {  // K, then V
      ptx::barrier_wait(&shared.full[ring.slot], ring.parity);
      release(ring.slot);
      ring.advance();
    }
  }

  /// Lets the producer have the buffer that O left through, well after the store was queued.
  __device__ __forceinline__ void release_stored() {
    if (stored >= 0 && thread() == 0) {
      ptx::wait_stores_read();
      ptx::barrier_arrive(&shared.q_empty[stored]);
    }
    stored = -1;
  }

  /// All key tiles of a work item.
  __device__ __forceinline__ void attend(int listed, int full_tiles) {
    const int last = listed + full_tiles;
    int i = 0;
    while (i < last) {
      if (i < listed && !sees_tile()) {
        leave_tile();
        ++i;
        continue;
      }
      step<true, false>();
      release_stored();
      ++i;
      for (; i < listed && sees_tile(); ++i) step<true, true>();
      if (i >= listed) {
        for (; i < last; ++i) step<false, true>();
      }
      finish();
    }
  }

  /// O and LSE of the group; O leaves through the rows of Q in shared memory.
  __device__ __forceinline__ void store(const Work& work, int buffer) {
    const int warp_row = thread() / 32 * 16;
    const int lane = thread() & 31;
    const int tokens = kGroupRows >> args.pack_shift;
    const int token_begin = work.row_begin + group * tokens;
    const int row_end = min(work.row_end, args.params.tokens_q);
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = row_sum[r];
      sum += __shfl_xor_sync(~0u, sum, 1);
      sum += __shfl_xor_sync(~0u, sum, 2);
      factor[r] = sum > 0 ? 1 / sum : 0;
      const int row = warp_row + lane / 4 + 8 * r;
      const int token = token_begin + (row >> args.pack_shift);
      if (lane % 4 == 0 && token < row_end) {
        const int head = work.head + (row & ((1 << args.pack_shift) - 1));
        args.params.lse[head * args.params.lse_head_stride + token] =
            sum > 0 ? row_max[r] * args.params.scale + logf(sum) : -INFINITY;
      }
    }
    scale_output(factor);

    unsigned char* rows = shared.q[buffer] + group * (kGroupRows * 128);
    const int matrix_row = warp_row + (lane & 15);
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 2) {
      const int chunk = n % 8 + lane / 16;
      ptx::store_matrices(
          ptx::shared_address(rows + n / 8 * Shape::kColumnBytes + matrix_row * 128 +
                              (chunk ^ (matrix_row & 7)) * 16),
          ptx::pack<T>(o[4 * n], o[4 * n + 1]), ptx::pack<T>(o[4 * n + 2], o[4 * n + 3]),
          ptx::pack<T>(o[4 * n + 4], o[4 * n + 5]), ptx::pack<T>(o[4 * n + 6], o[4 * n + 7]));
    }
    ptx::fence_async_proxy();
    ptx::named_sync(3 + group, 128);
    if (token_begin >= row_end) return;
    if (token_begin + tokens <= row_end || row_end == args.params.tokens_q) {
      if (thread() == 0) {
#pragma unroll
        for (int column = 0; column < Shape::kColumns; ++column) {
          ptx::store_box(&args.o, rows + column * Shape::kColumnBytes, column * 64, work.head,
                         token_begin);
        }
        ptx::commit_stores();
      }
    } else {
      for (int i = thread(); i < kGroupRows * kDim / 8; i += 128) {
        const int row = i / (kDim / 8);
        const int chunk = i % (kDim / 8);
        const int token = token_begin + (row >> args.pack_shift);
        if (token >= row_end) break;
        const int head = work.head + (row & ((1 << args.pack_shift) - 1));
        const auto* from =
            rows + chunk / 8 * Shape::kColumnBytes + row * 128 + ((chunk % 8) ^ (row & 7)) * 16;
        auto* to = static_cast<T*>(args.params.o.data) + token * args.params.o.token_stride +
                   head * args.params.o.head_stride + chunk * 8;
        *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(from);
      }
      ptx::named_sync(3 + group, 128);
    }
  }

  __device__ __forceinline__ void run() {
    if (SLICE_PINGPONG && group == 1) ptx::named_arrive(1, 256);  // group 0 has the first turn
    RingPosition<2> q;
    for (;; q.advance()) {
      ptx::barrier_wait(&shared.q_full[q.slot], q.parity);
      const Work work = shared.work[q.slot];
      if (work.row_begin < 0) break;
      q_operand = ptx::operand(ptx::shared_address(shared.q[q.slot]) +
                                   static_cast<std::uint32_t>(group) * (kGroupRows * 128),
                               16);
#pragma unroll
      for (float& x : o) x = 0;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        row_max[r] = -INFINITY;
        row_sum[r] = 0;
      }
      attend(work.listed_count, work.full_tiles);
      release_stored();
      store(work, q.slot);
      stored = q.slot;
    }
    if (thread() == 0) ptx::wait_stores_read();
  }
};

// ---------------------------------------------------------------------------------------------

template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    forward_kernel(const __grid_constant__ ForwardArgs args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) unsigned char shared_bytes[];
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(shared_bytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      ptx::barrier_init(&shared.q_full[i], 1);
      ptx::barrier_init(&shared.q_empty[i], kRowGroups);
    }
    for (int i = 0; i < Shape::kSlots; ++i) {
      ptx::barrier_init(&shared.full[i], 1);
      ptx::barrier_init(&shared.empty[i], Shape::kConsumerWarps * Shape::kCluster);
    }
    ptx::barrier_init(&shared.item_full, 1);
    ptx::barrier_init(&shared.item_empty, 1);
    ptx::fence_barrier_init();
    ptx::prefetch_map(&args.q);
    ptx::prefetch_map(&args.k);
    ptx::prefetch_map(&args.v);
    ptx::prefetch_map(&args.o);
  }
  const int rank = Shape::kCluster > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
  if constexpr (Shape::kCluster > 1)
    ptx::cluster_sync();
  else
    __syncthreads();
  const int warpgroup = __shfl_sync(~0u, static_cast<int>(threadIdx.x / 128), 0);
  if (warpgroup == 0) {
    ptx::decrease_registers<56>();
    if (threadIdx.x < 32) Producer<Shape>{args, shared, rank}.run();
  } else {
    ptx::increase_registers<224>();
    Consumer<Shape> consumer{args, shared, warpgroup - 1, rank,
                             args.params.scale * 1.4426950408889634f};
    consumer.run();
  }
  if constexpr (Shape::kCluster > 1) ptx::cluster_sync();  // none leaves while others reach into it
#endif
}

}  // namespace longca::slice::sm90
