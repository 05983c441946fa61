#pragma once

#include "attention/kernels/common/block_map.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "core/memory.h"

// Lists of masks of uniform blocks (has_block_plan), made on the GPU from the bits of the kept
// blocks, which are there already: at long contexts making them on the host and copying takes up to
// a second.
namespace longca::slice {

struct DeviceBlockTiles {
  TileLists lists;  ///< but for partial tiles and runs, which are in the buffers
  Buffer partial;
  Buffer runs;
};
/// Returns once the lengths are known; the buffers are written on the device's stream.
DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack);

struct DeviceTransposedTiles {
  TransposedLists lists;  ///< but for the segments, which are in the buffer
  Buffer segments;
};
/// Likewise, for work that is not ordered.
DeviceTransposedTiles make_device_transposed_lists(const Mask& mask, int pack,
                                                   const BackwardWork& work);

}  // namespace longca::slice
