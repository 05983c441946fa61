#pragma once

#include "attention/kernels/common/block_map.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "core/memory.h"

namespace longca::slice {

/// The lists of a mask of uniform blocks, made on the GPU from the bits that are there: at long
/// contexts they are too many to be made on the host and copied.
struct DeviceBlockTiles {
  TileLists lists;  ///< tiles, order and patterns; partial tiles and runs are in the buffers
  Buffer partial;
  Buffer runs;
};
/// Returns when the counts are known; the buffers are written on the device's stream.
DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack);

}  // namespace longca::slice
