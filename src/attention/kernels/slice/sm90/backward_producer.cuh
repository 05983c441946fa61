#pragma once

#include <cstdint>

#include "attention/kernels/slice/sm90/backward_args.h"
#include "attention/kernels/slice/sm90/backward_shape.cuh"
#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"

namespace longca::slice::sm90 {

/// One warp that fetches work and keeps the copy engine busy.
template <typename Shape>
struct BackwardProducer {
  using Shared = typename Shape::Shared;
  const BackwardArgs& args;
  Shared& shared;
  RingPlace<Shape::kStages> ring{};
  std::uint32_t keys_parity = 0;
  std::uint32_t pattern_parity = 0;

  __device__ __forceinline__ bool leads() const { return threadIdx.x == 0; }

  /// Q, dO and the terms of the rows, and which keys they see.
  __device__ __forceinline__ void load_rows(int head_block, int q_tile, int pattern, int rank) {
    const int slot = ring.slot;
    const int head = head_block << args.pack_shift;
    const int token = q_tile * (kBackwardRows >> args.pack_shift);
    const int index = head_block * args.q_tiles + q_tile;
    std::uint64_t* full = &shared.q_full[slot];
    ptx::barrier_wait(&shared.q_empty[slot], ring.parity ^ 1);
    if (leads()) {
      shared.tile[slot] = {index, pattern, rank};
      ptx::barrier_arrive_expect(
          full, Shape::kRowBytes + Shape::kTermBytes + (pattern >= 0 ? Shape::kPatternBytes : 0));
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.q[slot] + column * Shape::kRowColumnBytes, &args.q, full, column * 64,
                      head, token);
      }
      ptx::load_bytes(shared.terms[slot], args.terms + index, Shape::kTermBytes, full);
    }
    ptx::barrier_wait(&shared.dout_empty[slot], ring.parity ^ 1);
    if (leads()) {
      ptx::barrier_arrive_expect(&shared.dout_full[slot], Shape::kRowBytes);
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.dout[slot] + column * Shape::kRowColumnBytes, &args.dout,
                      &shared.dout_full[slot], column * 64, head, token);
      }
    }
    if (pattern >= 0) load_pattern(pattern, full);
    ring.advance();
  }

  /// As soon as the last one was applied.
  __device__ __forceinline__ void load_pattern(int pattern, std::uint64_t* full) {
    ptx::barrier_wait(&shared.pattern_empty, pattern_parity ^ 1);
    pattern_parity ^= 1;
    if (leads()) {
      ptx::load_bytes(shared.pattern,
                      args.params.lists.patterns + static_cast<std::int64_t>(pattern) * kTileKeys,
                      Shape::kPatternBytes, full);
    }
  }

  __device__ __forceinline__ void load_keys(const KeyWork& work) {
    ptx::barrier_wait(&shared.keys_empty, keys_parity ^ 1);
    keys_parity ^= 1;
    if (leads()) {
      shared.work = work;
      if (work.q_tiles == 0) {
        ptx::barrier_arrive(&shared.keys_full);
        return;
      }
      ptx::barrier_arrive_expect(&shared.keys_full, 2 * Shape::kKeyBytes);
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.k + column * Shape::kKeyColumnBytes, &args.k, &shared.keys_full,
                      column * 64, work.kv_head, work.k_begin);
      }
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.v + column * Shape::kKeyColumnBytes, &args.v, &shared.keys_full,
                      column * 64, work.kv_head, work.k_begin);
      }
    }
  }

  /// Tile `tile` of the list of head block `block` of a KV head.
  __device__ __forceinline__ const KeyTile& key_tile(int kv_head, int block, int tile) const {
    const DeviceTransposedLists& lists = args.params.lists;
    const int head = (kv_head * args.head_blocks + block) << args.pack_shift;
    const std::int64_t list = lists.list_heads == 1 ? 0
                                                    : static_cast<std::int64_t>(head) *
                                                          lists.list_heads / args.params.heads_q;
    return lists.tiles[list * lists.tiles_per_list + tile];
  }

  __device__ __forceinline__ void run() {
    ptx::wait_for_kernels_before();
    // Not earlier: what the next one reads has been cleared then.
    ptx::let_next_kernel_start();
    for (;;) {
      int id = 0;
      if (leads()) id = atomicAdd(args.work_counter, 1);
      id = __shfl_sync(~0u, id, 0);
      if (id >= args.work_items) break;
      run_item(id);
    }
    ptx::barrier_wait(&shared.keys_empty, keys_parity ^ 1);
    if (leads()) {
      shared.work.q_tiles = -1;
      ptx::barrier_arrive(&shared.keys_full);
    }
  }

  /// How many of a segment's query tiles are in the item, from which one on.
  __device__ __forceinline__ static int count_of(const int4& segment, const WorkItem& item,
                                                 int& first) {
    first = max(segment.x, item.q_begin);
    return min(segment.x + segment.y, item.q_end) - first;
  }

  /// Visits of a list's key tile that are in the item.
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

  /// The segment, of those that lie from the last query tile to the first, that the item begins
  /// with.
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
    const WorkItem item =
        lists.order[order_list * lists.items_per_order + rest / args.section_heads];
    const KeyTile& keys = key_tile(kv_head, 0, item.tile);
    int q_tiles = 0;
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      q_tiles += visits(key_tile(kv_head, block, item.tile), item);
    }
    load_keys({keys.k_begin, keys.k_end, kv_head, q_tiles, item.shared});
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      const KeyTile& tile = key_tile(kv_head, block, item.tile);
      const auto* segments = reinterpret_cast<const int4*>(lists.segments + tile.segments_begin);
      const int count = tile.segments;
#pragma unroll 1
      for (int i = first_segment(segments, count, item); i < count; ++i) {
        const int4 segment = segments[i];
        int first = 0;
        int left = __shfl_sync(~0u, count_of(segment, item, first), 0);
        first = __shfl_sync(~0u, first, 0);
        if (left <= 0) break;
        const int pattern = __shfl_sync(~0u, segment.z, 0);
        const int rank = __shfl_sync(~0u, segment.w, 0);
#pragma unroll 1
        for (; left > 0; --left) {
          load_rows(kv_head * args.head_blocks + block, first + left - 1, pattern, rank);
        }
      }
    }
  }
};

}  // namespace longca::slice::sm90
