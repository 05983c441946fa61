#pragma once

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/memory.h"

namespace longca::slice {

/// The transposed lists of a mask of uniform blocks, made on the GPU from the bits that are there:
/// on the host they take a second at long contexts.
struct DeviceTransposedTiles {
  TransposedLists lists;  ///< all but the segments, which are in the buffer
  Buffer segments;
};
/// For masks and packs with a block plan, and additions in no order. Returns when the counts are
/// known; the buffer is written on the device's stream.
DeviceTransposedTiles make_device_transposed_lists(const Mask& mask, int pack,
                                                   const BackwardWork& work);

}  // namespace longca::slice
