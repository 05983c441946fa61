#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"
#include "mask/list_of_head.h"

namespace longca::slice::sm90 {

/// The producer warp: fetches work items and keeps TMA busy.
template <typename Shape>
struct BackwardProducer {
  using Shared = typename Shape::Shared;
  const BackwardKernelArgs& args;
  Shared& shared;
  ptx::PipelineState<Shape::kStages> pipe{};
  std::uint32_t dout_phase = 0;  ///< where dO has one stage; else it goes with `pipe`
  ptx::PipelineState<Shape::kKeyStages> keys_pipe{};
  std::uint32_t pattern_phase = 0;

  /// Loads Q, dO, row terms and the pattern of a query tile into the next stage. Unless
  /// kRowsTogether, dO has a full barrier of its own, so that consumers start with K Qᵀ before it
  /// has arrived.
  __device__ __forceinline__ void load_rows(int head_block, int q_tile, int pattern,
                                            int prior_adds) {
    const int stage = pipe.index;
    const int head = head_block << args.pack_shift;
    const int token = q_tile * (kBackwardRows >> args.pack_shift);
    const int index = head_block * args.q_tiles + q_tile;
    constexpr bool kTogether = Shape::kRowsTogether;
    std::uint64_t* full = &shared.q_full[stage];
    ptx::mbarrier_wait(&shared.q_empty[stage], pipe.phase ^ 1);
    if constexpr (kTogether && !Shape::kRowsEmptyTogether) {
      ptx::mbarrier_wait(&shared.dout_empty[stage], pipe.phase ^ 1);
    }
    if (ptx::elect_one()) {
      shared.tile[stage] = {index, pattern, prior_adds};
      ptx::mbarrier_arrive_expect_tx(full, Shape::kRowBytes + Shape::kTermBytes +
                                               (kTogether ? Shape::kDoutBytes : 0) +
                                               (pattern >= 0 ? Shape::kPatternBytes : 0));
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::tma_load(shared.q[stage] + column * Shape::kRowColumnBytes, &args.q, full, column * 64,
                      head, token);
      }
      ptx::bulk_load(shared.terms[stage], args.terms + index, Shape::kTermBytes, full);
    }
    constexpr bool kOneStage = Shape::kDoutStages == 1;
    const int dout_stage = kOneStage ? 0 : stage;
    // The pattern is part of what `full` waits for: not behind dO where dO's only stage is in use
    // until the tile before has been computed, nor where the pattern need not wait.
    constexpr bool kPatternFirst = kOneStage || Shape::kPatternStages > 1;
    if (kPatternFirst && pattern >= 0) load_pattern(pattern, full);
    std::uint64_t* dout_full = kTogether ? full : &shared.dout_full[dout_stage];
    if constexpr (!kTogether) {
      ptx::mbarrier_wait(&shared.dout_empty[dout_stage], (kOneStage ? dout_phase : pipe.phase) ^ 1);
    }
    if constexpr (kOneStage) dout_phase ^= 1;
    if (ptx::elect_one()) {
      if constexpr (!kTogether) ptx::mbarrier_arrive_expect_tx(dout_full, Shape::kDoutBytes);
#pragma unroll
      for (int column = 0; column < Shape::kValueColumns; ++column) {
        ptx::tma_load(shared.dout[dout_stage] + column * Shape::kRowColumnBytes, &args.dout,
                      dout_full, column * 64, head, token);
      }
    }
    if (!kPatternFirst && pattern >= 0) load_pattern(pattern, full);
    pipe.advance();
  }

  /// Loads the pattern into the stage or, once all consumers have applied the one before, into the
  /// only buffer for it. Its bytes are among those that `full`, of Q, expects.
  __device__ __forceinline__ void load_pattern(int pattern, std::uint64_t* full) {
    constexpr bool kOneStage = Shape::kPatternStages == 1;
    if constexpr (kOneStage) {
      ptx::mbarrier_wait(&shared.pattern_empty, pattern_phase ^ 1);
      pattern_phase ^= 1;
    }
    if (ptx::elect_one()) {
      if constexpr (Shape::kHalves) pattern = pattern_index(pattern);
      ptx::bulk_load(shared.pattern[kOneStage ? 0 : pipe.index],
                     args.params.lists.patterns + static_cast<std::int64_t>(pattern) * kTileKeys,
                     Shape::kPatternBytes, full);
    }
  }

  /// Loads K and V of a key tile, and stores `work`.
  __device__ __forceinline__ void load_keys(const KeyTileWork& work) {
    const int stage = keys_pipe.index;
    std::uint64_t* full = &shared.keys_full[stage];
    ptx::mbarrier_wait(&shared.keys_empty[stage], keys_pipe.phase ^ 1);
    keys_pipe.advance();
    if (ptx::elect_one()) {
      shared.work[stage] = work;
      if (work.q_tiles == 0) {
        ptx::mbarrier_arrive(full);
        return;
      }
      ptx::mbarrier_arrive_expect_tx(full, Shape::kKeyBytes + Shape::kValueBytes);
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::tma_load(shared.k[stage] + column * Shape::kKeyColumnBytes, &args.k, full, column * 64,
                      work.kv_head, work.k_begin);
      }
#pragma unroll
      for (int column = 0; column < Shape::kValueColumns; ++column) {
        ptx::tma_load(shared.v[stage] + column * Shape::kKeyColumnBytes, &args.v, full, column * 64,
                      work.kv_head, work.k_begin);
      }
    }
  }

  /// Key tile `tile` of the list that head block `block` of a KV head reads.
  __device__ __forceinline__ const KeyTile& key_tile(int kv_head, int block, int tile) const {
    const DeviceTransposedLists& lists = args.params.lists;
    const int head = (kv_head * args.head_blocks + block) << args.pack_shift;
    const std::int64_t list =
        lists.list_heads == 1
            ? 0
            : list_of_head(std::int64_t{head}, lists.list_heads, args.params.heads_q);
    return lists.tiles[list * lists.tiles_per_list + tile];
  }

  __device__ __forceinline__ void run() {
    // For the whole CTA: all that other warps read of preprocess_kernel's results, or write, comes
    // behind a full barrier on which this warp arrives.
    ptx::griddepcontrol_wait();
    // Not earlier: postprocess_kernel may start from here on, and the grid that cleared what it
    // reads (visits, write_counter) has completed only now.
    ptx::griddepcontrol_launch_dependents();
    for (;;) {
      int id = 0;
      if (threadIdx.x == 0) id = atomicAdd(args.work_counter, 1);
      id = __shfl_sync(~0u, id, 0);
      if (id >= args.work_items) break;
      run_item(id);
    }
    ptx::mbarrier_wait(&shared.keys_empty[keys_pipe.index], keys_pipe.phase ^ 1);
    if (ptx::elect_one()) {
      shared.work[keys_pipe.index].q_tiles = -1;
      ptx::mbarrier_arrive(&shared.keys_full[keys_pipe.index]);
    }
  }

  /// How many of a segment's query tiles are in the item, and the first of them; ≤ 0 if the segment
  /// lies outside. The int4 is a QuerySegment.
  __device__ __forceinline__ static int count_of(const int4& segment, const WorkItem& item,
                                                 int& first) {
    first = max(segment.x, item.q_begin);
    return min(segment.x + segment.y, item.q_end) - first;
  }

  /// How many query tiles of a list's key tile are in the item. All lanes take part.
  __device__ __forceinline__ int visits(const KeyTile& tile, const WorkItem& item) const {
    if (item.q_begin <= tile.q_begin && tile.q_end <= item.q_end) return tile.q_tiles;
    const auto* segments =
        reinterpret_cast<const int4*>(args.params.lists.segments + tile.segments_begin);
    int sum = 0;
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x); i < tile.segments; i += 32) {
      int first = 0;
      sum += max(count_of(segments[i], item, first), 0);
    }
    return static_cast<int>(__reduce_add_sync(~0u, static_cast<unsigned>(sum)));
  }

  /// The first segment with query tiles before item.q_end, by bisection: segments are sorted from
  /// the last query tile to the first.
  __device__ __forceinline__ static int first_segment(const int4* segments, int count,
                                                      const WorkItem& item) {
    int begin = 0;
    while (begin < count) {
      const int middle = (begin + count) / 2;
      segments[middle].x >= item.q_end ? begin = middle + 1 : count = middle;
    }
    return begin;
  }

  __device__ __forceinline__ void run_item(int id) {
    const DeviceTransposedLists& lists = args.params.lists;
    const int section_items = lists.items_per_order * args.section_heads;
    const int rest = id % section_items;
    const int kv_head = id / section_items * args.section_heads + rest % args.section_heads;
    const std::int64_t order_list = lists.list_heads == 1 ? 0 : kv_head;
    const std::int64_t place = order_list * lists.items_per_order + rest / args.section_heads;
    const WorkItem item = lists.order[place];
    const KeyTile& keys = key_tile(kv_head, 0, item.tile);
    int q_tiles = 0;
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      q_tiles += visits(key_tile(kv_head, block, item.tile), item);
    }
    const int prior_parts = args.params.ordered && item.split >= 0 ? lists.prior_parts[place] : 0;
    load_keys({keys.k_begin, keys.k_end, kv_head, q_tiles, item.split, prior_parts});
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      const KeyTile& tile = key_tile(kv_head, block, item.tile);
      const auto* segments = reinterpret_cast<const int4*>(lists.segments + tile.segments_begin);
      const int count = tile.segments;
#pragma unroll 1
      for (int i = first_segment(segments, count, item); i < count; ++i) {
        Rows rows = rows_of(segments[i], item);
        if (rows.left <= 0) break;
        Rows others{};
        if constexpr (Shape::kHalves) {
          const int seen = seen_halves(rows.pattern);
          if (seen != 3 && i + 1 < count) {
            others = rows_of(segments[i + 1], item);
            seen_halves(others.pattern) == (3 ^ seen) ? ++i : others.left = 0;
          }
        }
#pragma unroll 1
        while (rows.left > 0) {
          --rows.left;
          load_rows(kv_head * args.head_blocks + block, rows.first + rows.left, rows.pattern,
                    rows.prior_adds);
          if constexpr (Shape::kHalves) {
            if (others.left > 0) {
              const Rows next = others;
              others = rows;
              rows = next;
            }
          }
        }
      }
    }
  }

  /// The query tiles of a segment that are in the item, and still to be loaded.
  struct Rows {
    int first, left;  ///< left ≤ 0: none
    int pattern, prior_adds;
  };
  __device__ __forceinline__ static Rows rows_of(const int4& segment, const WorkItem& item) {
    int first = 0;
    const int count = __shfl_sync(~0u, count_of(segment, item, first), 0);
    return {__shfl_sync(~0u, first, 0), count, __shfl_sync(~0u, segment.z, 0),
            __shfl_sync(~0u, segment.w, 0)};
  }
};

}  // namespace longca::slice::sm90
