#pragma once

#include <cstdint>

#include "attention/kernel.h"
#include "attention/slice/backward_launch.h"
#include "core/device.h"

namespace longca::slice {

/// The backward pass of a plan on a device of compute capability 9.0: lists of the transposed mask
/// in device memory, and workspace.
class BackwardPass {
 public:
  BackwardPass(const Problem& problem, const Mask& mask);

  void run(const BackwardArgs& args) const;

  std::int64_t bytes() const;
  int pack() const { return pack_; }

 private:
  BackwardParams params() const;

  Problem problem_;
  int pack_ = 1;
  int list_heads_ = 1;
  int tiles_per_list_ = 0;
  int shared_tiles_ = 0;
  Buffer tiles_, segments_, patterns_, order_, shared_keys_;
  Buffer workspace_;
};

}  // namespace longca::slice
