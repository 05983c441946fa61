#pragma once

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "mask/list_of_head.h"

// What a CTA of backward_kernel computes: a work item, and the walk over the query tiles that see
// its keys.
namespace longca::slice::sm80 {

struct BackwardKernelArgs {
  BackwardParams params;
  int q_tiles;             ///< query tiles of a query head
  int group_size;          ///< query heads of a KV head
  const float* row_terms;  ///< mma::GradientArgs
  float* dq_accum;         ///< likewise
  /// Split key tiles: [heads_k, split_tiles, kParts, dK and dV], each in the layout of DkFragments.
  float* dkv_accum;
  std::int32_t* dq_semaphores;  ///< [heads_q, q_tiles]: additions done, if ordered
  std::int32_t* work_counter;
};

/// Key tile `tile` of the list that a query head reads.
__device__ __forceinline__ const KeyTile& tile_of(const BackwardKernelArgs& args, int head,
                                                  int tile) {
  const DeviceTransposedLists& lists = args.params.lists;
  const std::int64_t list =
      list_of_head(std::int64_t{head}, lists.list_heads, args.params.heads_q) *
      lists.tiles_per_list;
  return lists.tiles[list + tile];
}

/// What a CTA computes. KV heads come in sections; every item of the order is taken for all heads
/// of a section, and part by part, before the next.
struct KeyTileWork {
  int kv_head;
  WorkItem item;
  int part;  ///< of the key tile: its keys [part · kTileN, (part + 1) · kTileN)

  __device__ __forceinline__ static KeyTileWork of(const BackwardKernelArgs& args, int parts,
                                                   int index) {
    const DeviceTransposedLists& lists = args.params.lists;
    const int id = index / parts;
    const int section_items = lists.items_per_order * lists.section_heads;
    const int rest = id % section_items;
    const int kv_head = id / section_items * lists.section_heads + rest % lists.section_heads;
    const std::int64_t order = lists.list_heads == 1 ? 0 : kv_head;
    return {kv_head, lists.order[order * lists.items_per_order + rest / lists.section_heads],
            index % parts};
  }
};

/// A query tile to visit.
struct Visit {
  int head;  ///< −1 after the last visit
  int q_tile;
  int pattern;     ///< index of TransposedLists::patterns, or kFull
  int prior_adds;  ///< QuerySegment::prior_adds
};

/// The visits of an item: one query head after the other, the last query tiles first. Kept in
/// shared memory and advanced by one thread, which leaves the registers to the accumulators.
struct VisitWalk {
  WorkItem item;
  int head;
  int last_head;
  int segments_left;
  int first, left;  ///< of the segment's query tiles that are in the item
  QuerySegment segment;
  const QuerySegment* segments;

  __device__ __forceinline__ void begin(const BackwardKernelArgs& args, const KeyTileWork& work) {
    item = work.item;
    head = work.kv_head * args.group_size - 1;
    last_head = head + args.group_size;
    segments_left = left = 0;
  }
  __device__ __forceinline__ Visit next(const BackwardKernelArgs& args) {
    while (left <= 0) {
      if (segments_left == 0) {
        if (head == last_head) return {-1, 0, 0, 0};
        begin_list(args.params.lists, tile_of(args, ++head, item.tile));
        continue;
      }
      segment = *segments++;
      first = max(segment.q_tile, item.q_begin);
      left = min(segment.q_tile + segment.count, item.q_end) - first;
      segments_left = left > 0 ? segments_left - 1 : 0;  // later segments lie before the item
    }
    --left;
    return {head, first + left, segment.pattern, segment.prior_adds};
  }

 private:
  /// Finds the first segment with query tiles before item.q_end, by bisection: segments are sorted
  /// from the last query tile to the first.
  __device__ __forceinline__ void begin_list(const DeviceTransposedLists& lists,
                                             const KeyTile& tile) {
    segments = lists.segments + tile.segments_begin;
    int begin = 0;
    for (int end = tile.segments; begin < end;) {
      const int middle = (begin + end) / 2;
      segments[middle].q_tile >= item.q_end ? begin = middle + 1 : end = middle;
    }
    segments += begin;
    segments_left = tile.segments - begin;
    left = 0;
  }
};

}  // namespace longca::slice::sm80
