#pragma once

#include <cstdint>

#include "attention/kernel.h"
#include "attention/key_sums.h"
#include "attention/plan_scratch.h"
#include "attention/slice/slice.h"
#include "attention/slice/uploaded_transposed_lists.h"

namespace longca::slice {

/// The backward pass of a plan: lists of the transposed mask in device memory, and workspace. Of a
/// deterministic problem every sum is added up in a fixed order.
class BackwardPass {
 public:
  /// `path` is not automatic.
  BackwardPass(const Problem& problem, const Mask& mask, SlicePath path);

  /// `keys` other than as_dq: of args without `accumulate`.
  void run(const BackwardArgs& args, KeyGradients keys = KeyGradients::as_dq);

  /// What it holds beside the scratch.
  std::int64_t list_bytes() const { return lists_.bytes(); }
  PlanScratch& scratch() { return scratch_; }
  const PlanScratch& scratch() const { return scratch_; }
  int pack() const { return lists_.args().pack; }

 private:
  BackwardParams params() const;

  Problem problem_;
  SlicePath path_;
  UploadedTransposedLists lists_;
  PlanScratch scratch_;
};

}  // namespace longca::slice
