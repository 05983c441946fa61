#pragma once

#include <cstdint>

#include "attention/kernels/slice/backward_launch.h"
#include "core/memory.h"

namespace longca::slice {

/// The lists of a backward pass in device memory.
class UploadedTransposedLists {
 public:
  /// Made by the device where blocks and order allow that, else by the host.
  UploadedTransposedLists(const Mask& mask, int pack, const BackwardWork& work);

  DeviceTransposedLists args() const;
  std::int64_t bytes() const;

 private:
  void upload(const TransposedLists& lists);

  /// Of the lists, without addresses.
  DeviceTransposedLists shape_;
  Buffer tiles_, segments_, patterns_, order_, shared_keys_, region_visits_, region_order_;
};

}  // namespace longca::slice
