#pragma once

#include "attention/adapters/flashmask_native/column_tiles.h"

namespace longca::flashmask {

/// Tiles that a work group classifies at a time.
inline constexpr int kListCapacity = 1024;

/// A tile to visit: its index, and the intervals that its cells must be tested for.
struct ListedTile {
  int index;
  bool test_lt;
  bool test_ut;
};

/// The tiles of one row (or column) of tiles that are not masked, found by all threads of the work
/// group at once: a loop that classified one tile after the other would wait for memory at each,
/// which costs more than the attention itself where a mask leaves little.
struct TileList {
  int entries[kListCapacity];  ///< 4 · index + 2 · test_lt + test_ut, ascending
  int warp_counts[32];
  int count;

  __device__ __forceinline__ ListedTile operator[](int i) const {
    const int entry = entries[i];
    return {entry >> 2, (entry & 2) != 0, (entry & 1) != 0};
  }

  /// Lists tiles [begin, min(end, begin + kListCapacity)); `state_of(index)` classifies one. Called
  /// by the whole work group; the list may be read on return. `kThreads` is the group's size.
  template <int kThreads, typename StateOf>
  __device__ __forceinline__ void fill(int begin, int end, StateOf state_of) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int last = min(end, begin + kListCapacity);
    int listed = 0;
    for (int first = begin; first < last; first += kThreads) {
      const int index = first + static_cast<int>(threadIdx.x);
      const TileState state = index < last ? state_of(index) : TileState{true, false, false};
      const bool visit = !state.masked;
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
      if (visit) entries[place] = 4 * index + 2 * state.test_lt + state.test_ut;
    }
    if (threadIdx.x == 0) count = listed;
    __syncthreads();
  }
};

}  // namespace longca::flashmask
