#pragma once

#include "attention/kernels/flashmask/column_tiles.h"
#include "attention/kernels/common/mma/tile_list.cuh"

namespace longca::flashmask {

/// A tile to visit: its index, and the intervals that its cells must be tested for.
struct ListedTile {
  int index;
  bool test_lt;
  bool test_ut;

  __device__ __forceinline__ static ListedTile of(int entry) {
    return {entry >> 2, (entry & 2) != 0, (entry & 1) != 0};
  }
};

/// An entry of the list for the tile `index`: negative if it is masked.
__device__ __forceinline__ int entry_of(int index, TileState state) {
  return state.masked ? -1 : 4 * index + 2 * state.test_lt + state.test_ut;
}

}  // namespace longca::flashmask
