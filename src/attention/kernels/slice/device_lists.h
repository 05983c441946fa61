#pragma once

#include <cstdint>

#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "core/cuda/upload.h"
#include "core/memory.h"

// The lists of a plan in device memory: made by the device where block lists allow that, else by
// the host.
namespace longca::slice {

/// The lists of the forward pass, and the counter by which its CTAs share the work.
class UploadedLists {
 public:
  UploadedLists(const Mask& mask, const Tiling& tiling, const cost::Platform& platform);

  Tiling tiling() const { return {shape_.pack, shape_.row_pairs}; }
  DeviceTileLists args() const;
  /// ForwardParams::work_counter.
  std::int32_t* work_counter() const { return work_counter_.in(lists_); }
  std::int64_t bytes() const { return lists_.bytes() + partial_.bytes() + runs_.bytes(); }

 private:
  void upload(const TileLists& lists, const cost::SliceForwardCycles& costs);

  DeviceTileLists shape_;  ///< without addresses
  Buffer lists_;           ///< the arrays below
  UploadedArray<QueryTile> tiles_;
  UploadedArray<TileStart> starts_;
  UploadedArray<PartialTile> host_partial_;
  UploadedArray<TileJoints> joints_;
  UploadedArray<FullRun> host_runs_;
  UploadedArray<RowIntervals> patterns_;
  UploadedArray<std::int32_t> work_counter_;
  Buffer partial_, runs_;  ///< where the device made them
};

/// The lists of the backward pass.
class UploadedTransposedLists {
 public:
  UploadedTransposedLists(const Mask& mask, int pack, const BackwardWork& work);

  DeviceTransposedLists args() const;
  std::int64_t bytes() const { return lists_.bytes() + segments_.bytes(); }

 private:
  void upload(const TransposedLists& lists);

  DeviceTransposedLists shape_;  ///< without addresses
  Buffer lists_;                 ///< the arrays below
  UploadedArray<KeyTile> tiles_;
  UploadedArray<QuerySegment> host_segments_;
  UploadedArray<std::uint64_t> patterns_;
  UploadedArray<WorkItem> order_;
  UploadedArray<std::int32_t> prior_parts_;
  UploadedArray<KeyRange> split_keys_;
  UploadedArray<std::int32_t> region_visits_, region_order_;
  Buffer segments_;  ///< where the device made them
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
DeviceBlockTiles make_device_block_lists(const Mask& mask, int pack,
                                         const cost::Platform& platform);

struct DeviceTransposedTiles {
  TransposedLists lists;  ///< without `segments`, which are in the buffer
  Buffer segments;
};
/// Likewise. Not for ordered work: segments made of bits have no prior_adds.
DeviceTransposedTiles make_device_transposed_lists(const Mask& mask, int pack,
                                                   const BackwardWork& work);

}  // namespace longca::slice
