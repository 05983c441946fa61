#pragma once

namespace longca::mma {

/// Tiles that a CTA classifies at a time.
inline constexpr int kListCapacity = 1024;

/// The tiles of one row (or column) of tiles that are to be visited, found by all threads of the
/// CTA at once: a loop that classified one tile after the other would wait for memory at
/// each, which costs more than the attention itself where a mask leaves little.
struct TileList {
  int entries[kListCapacity];  ///< what `entry_of` said, in ascending order of the tiles
  int warp_counts[32];
  int count;

  /// Lists tiles [begin, min(end, begin + kListCapacity)): `entry_of(index)` is what to remember of
  /// one, negative if it is not visited. Called by the whole CTA; the list may be read on
  /// return. `kThreads` is the group's size.
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
      __syncthreads();  // the counts of the round before have been read
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
