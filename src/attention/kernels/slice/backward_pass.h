#pragma once

#include <cstdint>
#include <optional>

#include "attention/api/kernel.h"
#include "attention/kernels/slice/device_lists.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/slice.h"

namespace longca::slice {

/// The backward pass of a plan: lists of the transposed mask in device memory, and workspace. For
/// deterministic problems gradients are added up in a fixed order.
class BackwardPass {
 public:
  /// `path` is not automatic.
  BackwardPass(const Problem& problem, const Mask& mask, SlicePath path);

  void run(const BackwardArgs& args);

  /// As Plan's. The sm80 path keeps nothing: 0.
  std::int64_t keep_rows(std::int64_t max_bytes);
  void prepare_rows(const BackwardArgs& args);

  /// Bytes held besides the scratch.
  std::int64_t own_bytes() const { return lists_.bytes() + rows_.bytes(); }
  PlanScratch& scratch() { return scratch_; }
  const PlanScratch& scratch() const { return scratch_; }
  int pack() const { return lists_.args().pack; }

 private:
  /// What row terms, and what is cleared with them, depend on: a call with others computes them
  /// anew.
  struct Rows {
    TensorArg dout, o;
    const float* lse;
    std::int64_t lse_head_stride;
    StoreMode dkv_mode;
    bool operator==(const Rows&) const = default;
  };
  static Rows rows_of(const BackwardParams& params);

  /// The params of the problem; without tensors where only the shape matters.
  BackwardParams params(const AttentionArgs& tensors = {},
                        const GradientTensors& gradients = {}) const;
  BackwardParams params_of(const BackwardArgs& args);

  Problem problem_;
  SlicePath path_;
  UploadedTransposedLists lists_;
  PlanScratch scratch_;
  Buffer rows_;                   ///< BackwardParams::rows, if kept; else that is in the scratch
  std::optional<Rows> prepared_;  ///< what prepare_rows has queued for the next call
};

}  // namespace longca::slice
