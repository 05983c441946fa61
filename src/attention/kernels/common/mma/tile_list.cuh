#pragma once

namespace longca::mma {

/// Tiles that a CTA classifies at a time.
inline constexpr int kListCapacity = 1024;

/// The tiles of one row (or column) of tiles to visit, classified by all threads of the CTA at
/// once: a loop over tiles would wait for memory at each, which costs more than the attention
/// itself where a mask leaves little.
struct TileList {
  int entries[kListCapacity];  ///< values of `entry_of`, in ascending order of the tiles
  int warp_counts[32];
  int count;

  /// Lists tiles [begin, min(end, begin + kListCapacity)). `entry_of(index)` is the entry of a
  /// tile, negative if it is skipped. Called by all `kThreads` threads of the CTA; the list may be
  /// read on return.
  template <int kThreads, typename EntryOf>
  __device__ __forceinline__ void fill(int begin, int end, EntryOf entry_of) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int last = min(end, begin + kListCapacity);
    int listed_before = 0;
    for (int first = begin; first < last; first += kThreads) {
      const int index = first + static_cast<int>(threadIdx.x);
      const int entry = index < last ? entry_of(index) : -1;
      const bool visit = entry >= 0;
      const unsigned votes = __ballot_sync(~0U, visit);
      __syncthreads();  // the previous round's counts have been read
      if (lane == 0) warp_counts[warp] = __popc(votes);
      __syncthreads();
      int place = listed_before + __popc(votes & ((1U << lane) - 1));
#pragma unroll
      for (int w = 0; w < kThreads / 32; ++w) {
        place += w < warp ? warp_counts[w] : 0;
        listed_before += warp_counts[w];
      }
      if (visit) entries[place] = entry;
    }
    if (threadIdx.x == 0) count = listed_before;
    __syncthreads();
  }
};

/// A tile of the list for one query head.
struct Item {
  int head;
  int place;

  __device__ __forceinline__ void advance(int count) {
    if (++place < count) return;
    place = 0;
    ++head;
  }
};

}  // namespace longca::mma
