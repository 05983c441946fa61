#pragma once

#include <cstdint>

#include "attention/slice/sm90/backward_args.h"
#include "attention/slice/sm90/backward_shape.cuh"
#include "attention/slice/sm90/ptx/barrier.cuh"
#include "attention/slice/sm90/ptx/tma.cuh"

namespace longca::slice::sm90 {

/// One warp that fetches work and keeps the copy engine busy.
template <typename Shape>
struct BackwardProducer {
  using Shared = typename Shape::Shared;
  const BackwardArgs& args;
  Shared& shared;
  RingPlace<Shape::kStages> ring{};
  std::uint32_t keys_parity = 0;

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
      shared.tile[slot] = {index, pattern >= 0, rank};
      ptx::barrier_arrive_expect(
          full, Shape::kRowBytes + Shape::kTermBytes + (pattern >= 0 ? Shape::kPatternBytes : 0));
#pragma unroll
      for (int column = 0; column < Shape::kColumns; ++column) {
        ptx::load_box(shared.q[slot] + column * Shape::kRowColumnBytes, &args.q, full, column * 64,
                      head, token);
      }
      ptx::load_bytes(shared.terms[slot], args.terms + index, Shape::kTermBytes, full);
      if (pattern >= 0) {
        ptx::load_bytes(shared.pattern[slot],
                        args.params.lists.patterns + static_cast<std::int64_t>(pattern) * kTileKeys,
                        Shape::kPatternBytes, full);
      }
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
    ring.advance();
  }

  __device__ __forceinline__ void load_keys(const KeyWork& work) {
    ptx::barrier_wait(&shared.keys_empty, keys_parity ^ 1);
    keys_parity ^= 1;
    if (leads()) {
      shared.work = work;
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

  __device__ __forceinline__ void run_item(int id) {
    const DeviceTransposedLists& lists = args.params.lists;
    const int section_items = lists.tiles_per_list * args.section_heads;
    const int rest = id % section_items;
    const int kv_head = id / section_items * args.section_heads + rest % args.section_heads;
    const std::int64_t order_list = lists.list_heads == 1 ? 0 : kv_head;
    const int tile = lists.order[order_list * lists.tiles_per_list + rest / args.section_heads];
    const KeyTile& keys = key_tile(kv_head, 0, tile);
    int q_tiles = 0;
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      q_tiles += key_tile(kv_head, block, tile).q_tiles;
    }
    load_keys({keys.k_begin, keys.k_end, kv_head, q_tiles, keys.shared});
#pragma unroll 1
    for (int block = 0; block < args.head_blocks; ++block) {
      const QuerySegment* segments = lists.segments + key_tile(kv_head, block, tile).segments_begin;
      const int count = key_tile(kv_head, block, tile).segments;
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
        const int4 segment = *reinterpret_cast<const int4*>(segments + i);
        const int first = __shfl_sync(~0u, segment.x, 0);
        const int pattern = __shfl_sync(~0u, segment.z, 0);
        const int rank = Shape::kOrdered ? __shfl_sync(~0u, segment.w, 0) : 0;
#pragma unroll 1
        for (int left = __shfl_sync(~0u, segment.y, 0); left > 0; --left) {
          load_rows(kv_head * args.head_blocks + block, first + left - 1, pattern, rank);
        }
      }
    }
  }
};

}  // namespace longca::slice::sm90
