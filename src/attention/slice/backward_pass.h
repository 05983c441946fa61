#pragma once

#include <cstdint>

#include "attention/kernel.h"
#include "attention/key_sums.h"
#include "attention/plan_scratch.h"
#include "attention/slice/backward_launch.h"
#include "core/device.h"

namespace longca::slice {

/// The backward pass of a plan on a device of compute capability 9.0: lists of the transposed mask
/// in device memory, and workspace.
class BackwardPass {
 public:
  /// Ordered: every sum is added up in a fixed order, so that the same call gives the same bits.
  BackwardPass(const Problem& problem, const Mask& mask, bool ordered = false);

  /// `keys` other than as_dq: of args without `accumulate`.
  void run(const BackwardArgs& args, KeyGradients keys = KeyGradients::as_dq);

  /// What it holds beside the scratch.
  std::int64_t list_bytes() const;
  PlanScratch& scratch() { return scratch_; }
  const PlanScratch& scratch() const { return scratch_; }
  int pack() const { return pack_; }

 private:
  BackwardParams params() const;

  Problem problem_;
  bool ordered_;
  int pack_ = 1;
  int list_heads_ = 1;
  int tiles_per_list_ = 0;
  int items_per_order_ = 0;
  int shared_tiles_ = 0;
  int section_heads_ = 1;
  Buffer tiles_, segments_, patterns_, order_, shared_keys_;
  PlanScratch scratch_;
};

}  // namespace longca::slice
