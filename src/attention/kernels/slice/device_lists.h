#pragma once

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "core/memory.h"

// The lists of a plan in device memory: made by the device where block lists allow that, else by
// the host.
namespace longca::slice {

/// The lists of the forward pass.
class UploadedLists {
 public:
  UploadedLists(const Mask& mask, int pack);

  int pack() const { return shape_.pack; }
  DeviceTileLists args() const;
  std::int64_t bytes() const;

 private:
  void upload(const TileLists& lists);

  DeviceTileLists shape_;  ///< without addresses
  Buffer tiles_, partial_, runs_, patterns_, order_;
};

/// The lists of the backward pass.
class UploadedTransposedLists {
 public:
  UploadedTransposedLists(const Mask& mask, int pack, const BackwardWork& work);

  DeviceTransposedLists args() const;
  std::int64_t bytes() const;

 private:
  void upload(const TransposedLists& lists);

  DeviceTransposedLists shape_;  ///< without addresses
  Buffer tiles_, segments_, patterns_, order_, split_keys_, region_visits_, region_order_;
};

/// Lists of masks of uniform blocks (has_block_plan), made on the GPU from the bits of the kept
/// blocks, which are there already: at long contexts making them on the host and copying takes up
/// to a second.
struct DeviceBlockTiles {
  TileLists lists;  ///< without `partial` and `runs`, which are in the buffers
  Buffer partial;
  Buffer runs;
};
/// Synchronous: the buffers are written on return.
DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack);

struct DeviceTransposedTiles {
  TransposedLists lists;  ///< without `segments`, which are in the buffer
  Buffer segments;
};
/// Likewise. Not for ordered work: segments made of bits have no prior_adds.
DeviceTransposedTiles make_device_transposed_lists(const Mask& mask, int pack,
                                                   const BackwardWork& work);

}  // namespace longca::slice
