#pragma once

#include "attention/kernels/slice/sm90/ptx/barrier.cuh"
#include "attention/kernels/slice/sm90/ptx/tma.cuh"
#include "attention/kernels/slice/sm90/shape.cuh"

// The producer: one warp that fetches work and keeps the copy engine busy.
namespace longca::slice::sm90 {

/// The items in turn, longest first within a section. Fetching the next one takes four dependent
/// reads: advance() does one at a time, between copies.
template <typename Shape>
struct WorkQueue {
  const ForwardArgs& args;
  typename Shape::Shared& shared;
  const int rank;
  std::uint32_t parity = 0;  ///< of the items that rank 0 told of
  int stage = 0;
  int item = 0, head = 0;
  const QueryTile* tiles = nullptr;  ///< of the head's list
  int tile = 0;
  int word = 0;   ///< lane l: word l of the query tile
  int4 listed{};  ///< lane l: its listed tile l, of the first 32
  FullRun run{};  ///< its first

  __device__ bool ready() const { return stage == 4; }

  /// Rank 0 took an item for the cluster; the other hears of it.
  __device__ void share_item() {
    const bool leads = (threadIdx.x & 31) == 0;
    if (rank == 0) {
      ptx::barrier_wait(&shared.item_empty, parity ^ 1);
      if (leads) ptx::cluster_store(&shared.item, item, &shared.item_full, 1);
    } else {
      if (leads) ptx::barrier_arrive_expect(&shared.item_full, sizeof(int));
      ptx::barrier_wait(&shared.item_full, parity);
      item = shared.item;
      __syncwarp();
      if (leads) ptx::cluster_arrive(&shared.item_empty, 0);
    }
    parity ^= 1;
  }

  __device__ void advance() {
    const DeviceTileLists& lists = args.params.lists;
    const int lane = threadIdx.x & 31;
    if (stage == 0) {
      if (rank == 0 && lane == 0) item = atomicAdd(args.params.work_counter, 1);
    } else if (stage == 1) {
      item = __shfl_sync(~0u, item, 0);
      if constexpr (Shape::kCluster > 1) share_item();
      if (item < args.items) {
        const int section_items = lists.tiles_per_list * args.section_blocks;
        const int rest = item % section_items;
        const int block = item / section_items * args.section_blocks + rest % args.section_blocks;
        head = (block * Shape::kCluster + rank) << args.pack_shift;
        const int list = head * lists.list_heads / args.params.heads_q;
        const std::int64_t first = static_cast<std::int64_t>(list) * lists.tiles_per_list;
        tiles = lists.tiles + first;
        tile = lists.order[first + rest / args.section_blocks];
      }
    } else if (stage == 2) {
      if (item < args.items && lane < 8) word = reinterpret_cast<const int*>(tiles + tile)[lane];
    } else if (item < args.items) {
      const QueryTile ahead = query_tile();
      if (lane < ahead.listed_count) {
        listed = reinterpret_cast<const int4*>(lists.listed + ahead.listed_begin)[lane];
      }
      if (ahead.full_tiles > 0) run = lists.runs[ahead.runs_begin];
    }
    ++stage;
  }

  __device__ QueryTile query_tile() const {
    QueryTile result;
    result.row_begin = __shfl_sync(~0u, word, 0);
    result.row_end = __shfl_sync(~0u, word, 1);
    result.listed_begin = __shfl_sync(~0u, word, 2);
    result.listed_count = __shfl_sync(~0u, word, 3);
    result.runs_begin = __shfl_sync(~0u, word, 4);
    result.full_tiles = __shfl_sync(~0u, word, 5);
    return result;
  }

  /// How many listed tiles, before any other, are of one half.
  __device__ int singles(const QueryTile& tile) const {
    const int lane = threadIdx.x & 31;
    return __clz(__brev(~__ballot_sync(~0u, lane < tile.listed_count && listed.y == kAbsent)));
  }

  /// False if there is no more.
  __device__ bool next() {
    while (!ready()) advance();
    stage = 0;
    return item < args.items;
  }
};

/// The halves of the full tiles of a query tile, run after run; the next run is read ahead.
struct FullHalves {
  const FullRun* run;
  int unread;  ///< halves of the runs not yet begun
  FullRun next;
  int key = 0, left = 0;

  __device__ FullHalves(const FullRun* from, FullRun first, int full_tiles)
      : run(from), unread(2 * full_tiles), next(first) {}

  __device__ int take() {
    if (left == 0) {
      key = next.k_begin;
      left = next.halves;
      unread -= left;
      if (unread > 0) next = *++run;
    }
    --left;
    key += kHalfKeys;
    return key - kHalfKeys;
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

  __device__ int lane() const { return threadIdx.x & 31; }

  /// The rows of Q, and what there is to do with them.
  __device__ void load_q(int buffer, const QueryTile& tile, int head, int singles) {
    std::uint64_t* full = &shared.q_full[buffer];
    shared.work[buffer] = {tile.row_begin, tile.row_end,      head,
                           singles,        tile.listed_count, tile.full_tiles};
    ptx::barrier_arrive_expect(full, Shape::kTileBytes);
#pragma unroll
    for (int column = 0; column < Shape::kColumns; ++column) {
      ptx::load_box(shared.q[buffer] + column * Shape::kColumnBytes, &args.q, full, column * 64,
                    head, tile.row_begin);
    }
  }

  /// Two halves into the slot at `ring`, or only the first.
  __device__ void load_halves(const CUtensorMap& map, int k0, int k1, bool single) {
    std::uint64_t* full = &shared.full[ring.slot];
#pragma unroll
    for (int column = 0; column < Shape::kColumns; ++column) {
      unsigned char* to = shared.ring[ring.slot] + column * Shape::kColumnBytes;
      if constexpr (Shape::kCluster == 1) {
        ptx::load_box(to, &map, full, column * 64, kv_head, k0);
        if (!single)
          ptx::load_box(to + Shape::kColumnBytes / 2, &map, full, column * 64, kv_head, k1);
      } else if (rank == 0 || !single) {
        ptx::load_box(to + rank * (Shape::kColumnBytes / 2), &map, full, column * 64, kv_head,
                      rank == 0 ? k0 : k1, 3);
      }
    }
  }

  __device__ int pattern_bytes() const {
    return (kGroupRows >> args.pack_shift) * static_cast<int>(sizeof(RowIntervals));
  }

  __device__ void load_pattern(int group, int pattern) {
    if (pattern < 0) return;
    const RowIntervals* from = args.params.lists.patterns +
                               static_cast<std::int64_t>(pattern) * (kGroupRows >> args.pack_shift);
    ptx::load_bytes(shared.intervals[ring.slot][group], from, pattern_bytes(),
                    &shared.full[ring.slot]);
  }

  /// A key tile into the next two slots. An absent half comes from behind the end of K: as zeros,
  /// for what the slot held before might be no numbers; not at all, if the tile is computed as a
  /// single half.
  __device__ void load_key_tile(int k0, int k1, int pattern0, int pattern1, bool single = false) {
    if (k1 == kAbsent) k1 = args.params.tokens_k;
    const int bytes = single ? Shape::kTileBytes / 2 : Shape::kTileBytes;
    ptx::barrier_wait(&shared.empty[ring.slot], ring.parity ^ 1);
    if (lane() == 0) {
      shared.pattern[ring.slot][0] = pattern0;
      shared.pattern[ring.slot][1] = pattern1;
      const int patterns = (pattern0 >= 0) + (pattern1 >= 0);
      ptx::barrier_arrive_expect(&shared.full[ring.slot], bytes + patterns * pattern_bytes());
      load_halves(args.k, k0, k1, single);
      load_pattern(0, pattern0);
      load_pattern(1, pattern1);
    }
    ring.advance();
    ptx::barrier_wait(&shared.empty[ring.slot], ring.parity ^ 1);
    if (lane() == 0) {
      ptx::barrier_arrive_expect(&shared.full[ring.slot], bytes);
      load_halves(args.v, k0, k1, single);
    }
    ring.advance();
  }

  /// K and V of a query tile. Towards the end, `queue` fetches the next item.
  __device__ void load_keys(const QueryTile& tile, int singles, WorkQueue<Shape>& queue) {
    constexpr int kFetchAhead = 5;
    const DeviceTileLists& lists = args.params.lists;
    FullHalves halves(lists.runs + tile.runs_begin, queue.run, tile.full_tiles);
    int4 mine = queue.listed;
    int left = tile.listed_count + tile.full_tiles;
    const auto loaded = [&] {
      if (--left < kFetchAhead && !queue.ready()) queue.advance();
    };
    for (int begin = 0; begin < tile.listed_count; begin += 32) {
      const int count = min(32, tile.listed_count - begin);
      if (begin > 0 && lane() < count) {
        const ListedTile* from = lists.listed + tile.listed_begin + begin + lane();
        mine = *reinterpret_cast<const int4*>(from);
      }
      for (int i = 0; i < count; ++i) {
        load_key_tile(__shfl_sync(~0u, mine.x, i), __shfl_sync(~0u, mine.y, i),
                      __shfl_sync(~0u, mine.z, i), __shfl_sync(~0u, mine.w, i),
                      begin + i < singles);
        loaded();
      }
    }
    for (int i = 0; i < tile.full_tiles; ++i) {
      const int k0 = halves.take();
      load_key_tile(k0, halves.take(), kFull, kFull);
      loaded();
    }
  }

  __device__ void run() {
    WorkQueue<Shape> queue{args, shared, rank};
    RingPosition<2> q;
    for (; queue.next(); q.advance()) {
      const QueryTile tile = queue.query_tile();
      const int singles = queue.singles(tile);
      const int head = queue.head;
      kv_head = head / (args.params.heads_q / args.params.heads_k);
      ptx::barrier_wait(&shared.q_empty[q.slot], q.parity ^ 1);
      if (lane() == 0) load_q(q.slot, tile, head, singles);
      load_keys(tile, singles, queue);
    }
    ptx::barrier_wait(&shared.q_empty[q.slot], q.parity ^ 1);
    if (lane() == 0) {
      shared.work[q.slot].row_begin = -1;
      ptx::barrier_arrive(&shared.q_full[q.slot]);
      if (rank == 0) leave_counter();
    }
  }

  /// The last CTA leaves the counters as they were found.
  __device__ void leave_counter() {
    std::int32_t* counter = args.params.work_counter;
    __threadfence();
    if (atomicAdd(counter + 1, 1) == static_cast<int>(gridDim.x) / Shape::kCluster - 1) {
      counter[0] = 0;
      counter[1] = 0;
    }
  }
};

}  // namespace longca::slice::sm90
