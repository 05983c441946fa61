#pragma once

namespace longca::mma {

/// Maximum number of tiles that a CTA classifies per fill.
inline constexpr int kListCapacity = 1024;

/// The non-empty tiles of one row (or column) of tiles, classified by all threads of the CTA in
/// parallel: for sparse masks, the memory latency of a sequential classification would exceed the
/// attention's own time.
struct TileList {
  int entries[kListCapacity];  ///< by ascending tile
  int warp_counts[32];
  int count;

  /// Fills the list with tiles of [begin, min(end, begin + kListCapacity)). `entry_of(index)` is
  /// the entry of a tile, negative to skip it. Called by the whole CTA of `kThreads` threads; the
  /// list may be read on return.
  template <int kThreads, typename EntryOf>
  __device__ __forceinline__ void fill(int begin, int end, EntryOf entry_of) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int last = min(end, begin + kListCapacity);
    int listed = 0;
    for (int first = begin; first < last; first += kThreads) {
      const int index = first + static_cast<int>(threadIdx.x);
      const int entry = index < last ? entry_of(index) : -1;
      const bool visit = entry >= 0;
      const unsigned votes = __ballot_sync(~0U, visit);
      __syncthreads();  // the previous round's counts have been read
      if (lane == 0) warp_counts[warp] = __popc(votes);
      __syncthreads();
      int place = listed + __popc(votes & ((1U << lane) - 1));
#pragma unroll
      for (int w = 0; w < kThreads / 32; ++w) {
        place += w < warp ? warp_counts[w] : 0;
        listed += warp_counts[w];
      }
      if (visit) entries[place] = entry;
    }
    if (threadIdx.x == 0) count = listed;
    __syncthreads();
  }
};

/// A (query head, list entry) pair; iterates over entries, then heads.
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
