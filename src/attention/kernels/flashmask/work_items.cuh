#pragma once

#include <cstdint>

#include "attention/kernels/common/mma/tile_list.cuh"
#include "attention/kernels/flashmask/column_tiles.h"

namespace longca::flashmask {

/// The block and head of a CTA.
struct WorkItem {
  int block;
  int head;
};

/// The work of CTA blockIdx.x: heads in sections that fit in L2, and within a section the longest
/// blocks of all its heads first.
__device__ __forceinline__ WorkItem work_item(const std::int32_t* order, int blocks, int heads,
                                              int section_heads) {
  const int index = static_cast<int>(blockIdx.x);
  const int section = index / (blocks * section_heads);
  const int rest = index - section * blocks * section_heads;
  const int first_head = section * section_heads;
  const int width = min(section_heads, heads - first_head);
  return {order[rest / width], first_head + rest % width};
}

/// A decoded entry of the TileList: the tile's index and the intervals to test per cell.
struct TileEntry {
  int index;
  bool test_lt;
  bool test_ut;

  __device__ __forceinline__ static TileEntry of(int entry) {
    return {entry >> 2, (entry & 2) != 0, (entry & 1) != 0};
  }
};

/// The encoded entry of tile `index`; negative if it is masked.
__device__ __forceinline__ int entry_of(int index, TileState state) {
  return state.masked ? -1 : 4 * index + 2 * state.test_lt + state.test_ut;
}

}  // namespace longca::flashmask
