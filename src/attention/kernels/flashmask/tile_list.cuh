#pragma once

#include "attention/kernels/common/mma/tile_list.cuh"
#include "attention/kernels/flashmask/column_tiles.h"

namespace longca::flashmask {

/// An entry of the list, decoded: a tile's index, and the intervals that its cells are tested for.
struct TileEntry {
  int index;
  bool test_lt;
  bool test_ut;

  __device__ __forceinline__ static TileEntry of(int entry) {
    return {entry >> 2, (entry & 2) != 0, (entry & 1) != 0};
  }
};

/// An entry of the list for the tile `index`: negative if it is masked.
__device__ __forceinline__ int entry_of(int index, TileState state) {
  return state.masked ? -1 : 4 * index + 2 * state.test_lt + state.test_ut;
}

}  // namespace longca::flashmask
