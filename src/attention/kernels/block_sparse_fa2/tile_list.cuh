#pragma once

#include "attention/kernels/block_sparse_fa2/band.h"
#include "attention/kernels/common/mma/tile_list.cuh"

namespace longca::fa2_sparse {

/// An entry of the list, decoded: a tile's index, and whether its cells are tested.
struct TileEntry {
  int index;
  bool test;

  __device__ __forceinline__ static TileEntry of(int entry) {
    return {entry >> 1, (entry & 1) != 0};
  }
};

/// An entry of the list for the tile `index` of `rows` × `keys`: negative if the band leaves none
/// of it.
__device__ __forceinline__ int entry_of(int index, const Band& band, Tokens rows, Tokens keys) {
  if (band.empty(rows, keys)) return -1;
  return 2 * index + static_cast<int>(band.partial(rows, keys));
}

}  // namespace longca::fa2_sparse
