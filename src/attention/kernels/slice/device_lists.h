#pragma once

#include <cstdint>

#include "attention/kernels/slice/device_block_lists.h"
#include "attention/kernels/slice/launch.h"
#include "core/memory.h"

// The lists of a plan in device memory: made by the device where block lists allow that, else by
// the host.
namespace longca::slice {

/// Of the forward pass.
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

/// Of the backward pass.
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

}  // namespace longca::slice
