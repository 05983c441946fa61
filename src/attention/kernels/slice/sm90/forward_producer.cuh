#pragma once

#include "attention/kernels/slice/sm90/forward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"
#include "mask/list_of_head.h"

// The producer warp: fetches work tiles and keeps TMA busy.
namespace longca::slice::sm90 {

/// How many take work tiles: clusters, or streams of CTAs.
template <typename Shape>
__device__ __forceinline__ int takers() {
  return static_cast<int>(gridDim.x) / Shape::kCluster * Shape::kStreams;
}

/// Takes work tiles, the longest of a section first: the first of each taker is that of the
/// taker's number, all others come from a counter in device memory. Fetching one takes up to three
/// dependent reads (counter, query tile, its first list entries unless they come with it): each
/// advance() issues one, between TMA loads. All lanes of the producer warp take part.
template <typename Shape>
struct TileScheduler {
  const ForwardKernelArgs& args;
  typename Shape::Shared& shared;
  const int rank;           ///< in the cluster
  int index;                ///< of the next work tile: at first, the taker's number
  bool counted = false;     ///< whether `index` comes from the counter
  std::uint32_t phase = 0;  ///< of work_full and work_empty, as in PipelineState
  /// The CTA of a pair that takes its first query tile. Alternates from work tile to work tile:
  /// under a causal mask that tile sees less, and neither CTA is to get ahead.
  int first_rank = 0;
  int reads = 1;   ///< done for the next work tile, of 3
  int head = 0;    ///< first query head of the next work tile
  int word = 0;    ///< lane l: word l of the QueryTile, or of the TileStart
  int4 partial{};  ///< lane l: PartialTile l of the query tile, of the first 32
  FullRun run{};   ///< first full run of the query tile

  __device__ bool ready() const { return reads == 3; }

  /// Sends `index`, which CTA 0 took for the cluster, to CTA 1.
  __device__ void share_index() {
    const bool leads = (threadIdx.x & 31) == 0;
    if (rank == 0) {
      ptx::mbarrier_wait(&shared.work_empty, phase ^ 1);
      if (leads) ptx::cluster_store_async(&shared.work_index, index, &shared.work_full, 1);
    } else {
      if (leads) ptx::mbarrier_arrive_expect_tx(&shared.work_full, sizeof(int));
      ptx::mbarrier_wait(&shared.work_full, phase);
      index = shared.work_index;
      __syncwarp();
      if (leads) ptx::cluster_mbarrier_arrive(&shared.work_empty, 0);
    }
    phase ^= 1;
  }

  __device__ void advance() {
    const DeviceTileLists& lists = args.params.lists;
    const int lane = threadIdx.x & 31;
    if (reads == 0) {
      if (rank == 0 && lane == 0) index = takers<Shape>() + atomicAdd(args.params.work_counter, 1);
      counted = true;
    } else if (reads == 1) {
      if (counted) {
        index = __shfl_sync(~0u, index, 0);
        if constexpr (Shape::kCluster > 1) share_index();
      }
      if (index < args.work_tiles) {
        const int section_tiles = args.list_work_tiles * args.section_blocks;
        const int rest = index % section_tiles;
        const int block = index / section_tiles * args.section_blocks + rest % args.section_blocks;
        int entry = rest / args.section_blocks;
        head = block << args.pack_shift;
        if constexpr (Shape::kCluster > 1) {
          if (lists.row_pairs) {
            entry = entry * Shape::kCluster + (rank ^ first_rank);
            first_rank ^= 1;
          } else {
            head = (block * Shape::kCluster + rank) << args.pack_shift;
          }
        }
        const int list = list_of_head(head, lists.list_heads, args.params.heads_q);
        const std::int64_t first = static_cast<std::int64_t>(list) * lists.tiles_per_list;
        if (lists.starts != nullptr) {
          word = reinterpret_cast<const int*>(lists.starts + entry)[lane];
        } else if (lane < 8) {
          word = reinterpret_cast<const int*>(lists.tiles + first + entry)[lane];
        }
      }
    } else if (index < args.work_tiles) {
      const QueryTile next = query_tile();
      if (lists.starts != nullptr && next.partial_count <= TileStart::kPartial) {
        read_start();
      } else {
        if (lane < next.partial_count) {
          partial = reinterpret_cast<const int4*>(lists.partial + next.partial_begin)[lane];
        }
        if (next.full_tiles > 0) run = lists.runs[next.runs_begin];
      }
    }
    ++reads;
  }

  /// Takes the entries of the lists from the words of a TileStart, where it has all that are read.
  __device__ void read_start() {
    run = {__shfl_sync(~0u, word, 6), __shfl_sync(~0u, word, 7)};
    const int first = 8 + 4 * (threadIdx.x & 31);  // modulo 32: lanes beyond the last one use none
    partial = {__shfl_sync(~0u, word, first), __shfl_sync(~0u, word, first + 1),
               __shfl_sync(~0u, word, first + 2), __shfl_sync(~0u, word, first + 3)};
  }

  __device__ QueryTile query_tile() const {
    QueryTile result;
    result.row_begin = __shfl_sync(~0u, word, 0);
    result.row_end = __shfl_sync(~0u, word, 1);
    result.partial_begin = __shfl_sync(~0u, word, 2);
    result.partial_count = __shfl_sync(~0u, word, 3);
    result.runs_begin = __shfl_sync(~0u, word, 4);
    result.full_tiles = __shfl_sync(~0u, word, 5);
    return result;
  }

  /// How many of the first 32 partial tiles are narrow, of one sub-tile; narrow tiles come first.
  __device__ int narrow_tiles(const QueryTile& tile) const {
    const int lane = threadIdx.x & 31;
    return __clz(__brev(~__ballot_sync(~0u, lane < tile.partial_count && partial.y == kAbsent)));
  }

  /// Completes the reads; false if there is no more work. The next advance() overwrites them.
  __device__ bool next() {
    while (!ready()) advance();
    reads = 0;
    return index < args.work_tiles;
  }
};

/// The sub-tiles of a query tile's full runs, one run after the other, each from its last key to
/// its first: scores that grow along the keys are then largest in the first tiles, and no row max
/// moves afterwards. Reads the next run ahead.
struct FullRunCursor {
  const FullRun* run;
  int unread;  ///< sub-tiles of the runs not yet begun
  FullRun next;
  /// First key of the sub-tile taken last; sub-tiles of the current run still to take.
  int key = 0, left = 0;

  __device__ FullRunCursor(const FullRun* from, FullRun first, int full_tiles)
      : run(from), unread(2 * full_tiles), next(first) {}

  /// The first key of the next sub-tile.
  __device__ int take() {
    if (left == 0) {
      left = next.sub_tiles;
      key = next.k_begin + left * kSubTileKeys;
      unread -= left;
      if (unread > 0) next = *++run;
    }
    --left;
    key -= kSubTileKeys;
    return key;
  }
};

template <typename Shape>
struct ForwardProducer {
  using Shared = typename Shape::Shared;
  const ForwardKernelArgs& args;
  Shared& shared;
  const int rank;                               ///< in the cluster
  ptx::PipelineState<Shape::kStages> pipe{};    ///< of the next step's K
  ptx::PipelineState<Shape::kQueryStages> q{};  ///< of the next work tile
  /// Keys of the last step, whose V is still to be loaded (ForwardShape::kKeysAhead). k0 is kAbsent
  /// if it is loaded, k1 if the step is narrow.
  int k0_before = kAbsent, k1_before = kAbsent;
  int2 joints_before{};  ///< likewise
  int kv_head = 0;

  __device__ int lane() const { return threadIdx.x & 31; }
  /// Whether this thread issues the loads of keys. In pairs of CTAs lane 0 does: with an elected
  /// thread ptxas orders the consumers' loop of kUnchecked in another way, which takes 1 % longer.
  __device__ bool leads() const {
    if constexpr (Shape::kCluster > 1) return lane() == 0;
    return ptx::elect_one();
  }

  /// Loads Q of a work tile, [128, kDim], and stores the work tile itself. One lane.
  __device__ void load_q(int stage, const QueryTile& tile, int head, int narrow_tiles) {
    std::uint64_t* full = &shared.q_full[stage];
    shared.work[stage] = {tile.row_begin, tile.row_end,       head,
                          narrow_tiles,   tile.partial_count, tile.full_tiles};
    if constexpr (Shape::kUnchecked) {
      shared.repeats.partial_begin[stage] = tile.partial_begin;
      shared.repeats.runs_begin[stage] = tile.runs_begin;
    }
    ptx::mbarrier_arrive_expect_tx(full, Shape::kQueryBytes);
#pragma unroll
    for (int column = 0; column < Shape::kColumns; ++column) {
      ptx::tma_load(shared.q[stage] + column * Shape::kRowColumnBytes, &args.q, full, column * 64,
                    head, tile.row_begin);
    }
  }

  /// Loads the sub-tiles of a K or V tile from keys k0 and k1 into rows [0, 64) and [64, 128); only
  /// the first if narrow, or where a step has one. In a cluster each CTA loads one, or half of the
  /// columns of the only one, and multicasts it to both. `joints`: the words of both.
  template <int kCount>
  __device__ void load_sub_tiles(const CUtensorMap& map, const CUtensorMap& joint_map, int stage,
                                 int k0, int k1, bool narrow, int2 joints) {
    std::uint64_t* full = &shared.full[stage];
    if constexpr (Shape::kJoins) {
      if (joints.x != 0) load_joined<kCount>(joint_map, stage, 0, k0, Joint(joints.x));
      if (joints.y != 0) load_joined<kCount>(joint_map, stage, 1, k1, Joint(joints.y));
    }
#pragma unroll
    for (int column = 0; column < kCount; ++column) {
      unsigned char* to = Shape::stage(shared, stage) + column * Shape::kKeyColumnBytes;
      if constexpr (Shape::kStepsPerTile > 1) {
        if constexpr (Shape::kCluster == 1) {
          ptx::tma_load(to, &map, full, column * 64, kv_head, k0);
        } else if (column * Shape::kCluster / kCount == rank) {
          ptx::tma_load(to, &map, full, column * 64, kv_head, k0, 3);
        }
      } else if constexpr (Shape::kCluster == 1) {
        if (!Shape::kJoins || joints.x == 0) {
          ptx::tma_load(to, &map, full, column * 64, kv_head, k0);
        }
        if (!narrow && (!Shape::kJoins || joints.y == 0)) {
          ptx::tma_load(to + Shape::kKeyColumnBytes / 2, &map, full, column * 64, kv_head, k1);
        }
      } else if (rank == 0 || !narrow) {
        ptx::tma_load(to + rank * (Shape::kKeyColumnBytes / 2), &map, full, column * 64, kv_head,
                      rank == 0 ? k0 : k1, 3);
      }
    }
  }

  /// Loads a sub-tile with a joint. One lane.
  template <int kCount>
  __device__ void load_joined(const CUtensorMap& map, int stage, int sub_tile, int k, Joint joint) {
    constexpr int kBoxes = kSubTileKeys / kJointKeys;
    const int boxes_before_cut = joint.cut() / kJointKeys;
    unsigned char* to = Shape::stage(shared, stage) + sub_tile * (Shape::kKeyColumnBytes / 2);
#pragma unroll 1
    for (int box = 0; box < kBoxes; ++box, k += kJointKeys, to += kJointKeys * 128) {
      if (box == boxes_before_cut) k += joint.skip();
#pragma unroll
      for (int column = 0; column < kCount; ++column) {
        ptx::tma_load(to + column * Shape::kKeyColumnBytes, &map, &shared.full[stage], column * 64,
                      kv_head, k);
      }
    }
  }

  /// One RowIntervals per token of a row group.
  __device__ int pattern_bytes() const {
    return (kGroupRows >> args.pack_shift) * static_cast<int>(sizeof(RowIntervals));
  }

  __device__ void load_pattern(int group, int pattern) {
    if (pattern < 0) return;
    const RowIntervals* from = args.params.lists.patterns +
                               static_cast<std::int64_t>(pattern) * (kGroupRows >> args.pack_shift);
    ptx::bulk_load(shared.intervals[Shape::pattern_stage(pipe.index)][group], from, pattern_bytes(),
                   &shared.full[pipe.index]);
  }

  /// Loads K of each step of a key tile, and V of the step before or, without kKeysAhead, its own.
  /// A narrow tile, which the consumers multiply at N = 64, has no second sub-tile. A tile of one
  /// sub-tile beyond those that TileScheduler::narrow_tiles counts is multiplied as a whole: its
  /// second sub-tile is loaded from past the end of K, where TMA gives zeros, as stale shared
  /// memory could hold NaN.
  __device__ void load_key_tile(int k0, int k1, int pattern0, int pattern1, bool narrow = false,
                                int2 joints = {0, 0}) {
    if (k1 == kAbsent) k1 = args.params.tokens_k;
    if constexpr (Shape::kStepsPerTile > 1) {
      load_step(k0, k0, pattern0, pattern1, false, joints);
      if (!narrow) load_step(k1, k1, pattern0, pattern1, false, joints);
    } else {
      load_step(k0, k1, pattern0, pattern1, narrow, joints);
    }
  }

  __device__ void load_step(int k0, int k1, int pattern0, int pattern1, bool narrow, int2 joints) {
    ptx::mbarrier_wait(&shared.empty[pipe.index], pipe.phase ^ 1);
    if (leads()) {
      shared.pattern[pipe.index][0] = pattern0;
      shared.pattern[pipe.index][1] = pattern1;
      const int patterns = (pattern0 >= 0) + (pattern1 >= 0);
      const int bytes = narrow ? Shape::kKeyBytes / 2 : Shape::kKeyBytes;
      ptx::mbarrier_arrive_expect_tx(&shared.full[pipe.index], bytes + patterns * pattern_bytes());
      load_sub_tiles<Shape::kColumns>(args.k, args.k_joints, pipe.index, k0, k1, narrow, joints);
      load_pattern(0, pattern0);
      load_pattern(1, pattern1);
    }
    if constexpr (Shape::kKeysAhead) load_values();
    k0_before = k0;
    k1_before = narrow ? kAbsent : k1;
    joints_before = joints;
    pipe.advance();
    pipe.advance();
    if constexpr (!Shape::kKeysAhead) load_values();
  }

  /// Loads V of the last step, the stage before that of the next step's K, if it is not loaded.
  __device__ void load_values() {
    if (k0_before == kAbsent) return;
    const bool wraps = pipe.index == 0;
    const int stage = wraps ? Shape::kStages - 1 : pipe.index - 1;
    ptx::mbarrier_wait(&shared.empty[stage], pipe.phase ^ (wraps ? 0 : 1));
    if (leads()) {
      const bool narrow = k1_before == kAbsent;
      ptx::mbarrier_arrive_expect_tx(&shared.full[stage],
                                     narrow ? Shape::kValueBytes / 2 : Shape::kValueBytes);
      load_sub_tiles<Shape::kValueColumns>(args.v, args.v_joints, stage, k0_before, k1_before,
                                           narrow, joints_before);
    }
    k0_before = kAbsent;
  }

  /// Loads K and V of a work tile: partial tiles, then full ones; with kUnchecked full ones behind
  /// the narrow ones. During the last of them, `scheduler` fetches the next work tile; what it read
  /// for this one is copied before. With one stage of Q, `load_queries` is called behind the first
  /// key tile: the work tile before frees that tile's stages earlier than its Q.
  template <typename LoadQueries>
  __device__ void load_keys(const QueryTile& tile, int narrow_tiles,
                            TileScheduler<Shape>& scheduler, const LoadQueries& load_queries) {
    constexpr int kFetchAhead = 5;
    constexpr bool kLate = Shape::kQueryStages == 1;
    const DeviceTileLists& lists = args.params.lists;
    FullRunCursor runs(lists.runs + tile.runs_begin, scheduler.run, tile.full_tiles);
    int4 mine = scheduler.partial;
    int2 my_joints{};
    int left = tile.partial_count + tile.full_tiles;
    bool late = kLate;
    if (kLate && left == 0) load_queries();
    const auto loaded = [&] {
      if (kLate && late) load_queries();
      late = false;
      if (--left < kFetchAhead && !scheduler.ready()) scheduler.advance();
    };
    const auto read_partial = [&](int begin) {
      if (begin > 0 && lane() < tile.partial_count - begin) {
        const PartialTile* from = lists.partial + tile.partial_begin + begin + lane();
        mine = *reinterpret_cast<const int4*>(from);
      }
      if constexpr (Shape::kJoins) {
        if (lists.joints != nullptr && lane() < tile.partial_count - begin) {
          const TileJoints* from = lists.joints + tile.partial_begin + begin + lane();
          my_joints = *reinterpret_cast<const int2*>(from);
        }
      }
    };
    const auto load_partial = [&](int i) {
      int2 joints{};
      if constexpr (Shape::kJoins) {
        joints = {__shfl_sync(~0u, my_joints.x, i), __shfl_sync(~0u, my_joints.y, i)};
      }
      load_key_tile(__shfl_sync(~0u, mine.x, i), __shfl_sync(~0u, mine.y, i),
                    __shfl_sync(~0u, mine.z, i), __shfl_sync(~0u, mine.w, i), i < narrow_tiles,
                    joints);
      loaded();
    };
    int full_tiles = tile.full_tiles;
    const auto load_full = [&] {
      for (; full_tiles > 0; --full_tiles) {
        const int k0 = runs.take();
        load_key_tile(k0, runs.take(), kFull, kFull);
        loaded();
      }
    };
    // In the other's form either kernel takes 1 to 2 % longer.
    if constexpr (Shape::kUnchecked) {
      for (int i = 0, end = narrow_tiles;; end = tile.partial_count) {
        for (; i < end; ++i) {
          if (i % 32 == 0) read_partial(i);
          load_partial(i);
        }
        load_full();
        if (end == tile.partial_count) break;
      }
    } else {
      for (int begin = 0; begin < tile.partial_count; begin += 32) {
        read_partial(begin);
        const int end = min(begin + 32, tile.partial_count);
        for (int i = begin; i < end; ++i) load_partial(i);
      }
      load_full();
    }
    load_values();
  }

  __device__ void run(TileScheduler<Shape>& scheduler) {
    for (; scheduler.next(); q.advance()) {
      const QueryTile tile = scheduler.query_tile();
      const int narrow_tiles = scheduler.narrow_tiles(tile);
      const int head = scheduler.head;
      kv_head = head / (args.params.heads_q / args.params.heads_k);
      const auto load_queries = [&] {
        ptx::mbarrier_wait(&shared.q_empty[q.index], q.phase ^ 1);
        if (lane() == 0) load_q(q.index, tile, head, narrow_tiles);
      };
      if constexpr (Shape::kQueryStages > 1) load_queries();
      load_keys(tile, narrow_tiles, scheduler, load_queries);
    }
    if (rank == 0 && lane() == 0) reset_counter();
    end_round(scheduler);
  }

  /// Tells the consumers that no work tile is left. In a cluster, waits until the other CTA has
  /// arrived on all barriers of this one, which may exit then.
  __device__ void end_round(TileScheduler<Shape>& scheduler) {
    ptx::mbarrier_wait(&shared.q_empty[q.index], q.phase ^ 1);
    if (lane() == 0) {
      shared.work[q.index].row_begin = -1;
      ptx::mbarrier_arrive(&shared.q_full[q.index]);
    }
    q.advance();
    if constexpr (Shape::kCluster > 1) {
      auto stage = pipe;
      for (int i = 0; i < Shape::kStages; ++i, stage.advance()) {
        ptx::mbarrier_wait(&shared.empty[stage.index], stage.phase ^ 1);
      }
      if (rank == 0) ptx::mbarrier_wait(&shared.work_empty, scheduler.phase ^ 1);
    }
  }

  /// The second round: loads the work tiles that row groups of the cluster have marked, one for
  /// each.
  __device__ void repeat(TileScheduler<Shape>& scheduler) {
    const DeviceTileLists& lists = args.params.lists;
    scheduler.reads = 3;  // it has no more to fetch
#pragma unroll 1
    for (int group = 0; group < Shape::kCluster * kRowGroups; ++group) {
      const auto [work, partial_begin, runs_begin] = shared.repeats.of_group[group];
      if (work.row_begin < 0) continue;
      const QueryTile tile{work.row_begin,     work.row_end, partial_begin,
                           work.partial_count, runs_begin,   work.full_tiles};
      if (lane() < tile.partial_count) {
        scheduler.partial = reinterpret_cast<const int4*>(lists.partial + partial_begin)[lane()];
      }
      if (tile.full_tiles > 0) scheduler.run = lists.runs[runs_begin];
      kv_head = work.head / (args.params.heads_q / args.params.heads_k);
      ptx::mbarrier_wait(&shared.q_empty[q.index], q.phase ^ 1);
      if (lane() == 0) {
        shared.repeats.group[q.index] = group;
        load_q(q.index, tile, work.head, work.narrow_tiles);
      }
      load_keys(tile, work.narrow_tiles, scheduler, [] {});
      q.advance();
    }
    end_round(scheduler);
  }

  /// Counts the takers that have ended; the last one sets both counters back to zero for the next
  /// launch. Nobody takes work any more by then.
  __device__ void reset_counter() {
    std::int32_t* counter = args.params.work_counter;
    __threadfence();
    if (atomicAdd(counter + 1, 1) == takers<Shape>() - 1) {
      counter[0] = 0;
      counter[1] = 0;
    }
  }
};

}  // namespace longca::slice::sm90
