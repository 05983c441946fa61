#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"
#include "parallel/executor/merge_queue.h"
#include "parallel/executor/step_math.h"

namespace longca {

/// Partial results of one float32 buffer that is merged late, and how they are merged: o with its
/// lse by StepMath::merge_all, dq by StepMath::sum_all. A slot is an image of the buffer in the
/// problem's dtype, in which each part has its place; so has its lse, or it is contiguous for
/// itself where every part has all heads. Slot 0 may be the result itself: rows that only one step
/// reaches are then never merged, nor touched again.
class PartStore {
 public:
  /// `accumulator`: the whole buffer; `lse`: of the same rows and heads, no data if there is none.
  PartStore(const TensorView& accumulator, const LseView& lse, DType dtype, bool whole_heads)
      : accumulator_(accumulator), lse_(lse), dtype_(dtype), whole_heads_(whole_heads) {}

  MergeQueue& queue() { return queue_; }
  /// `result`: where the whole buffer is delivered, in the problem's dtype; nobody else looks at it
  /// before that. Contiguous if `whole_heads`. Before bytes().
  void write_through(const TensorView& result) { result_ = result; }

  std::int64_t bytes() const {
    return tensor_slots() * tensor_bytes() + (queue_.slots() - first_lse_slot()) * lse_bytes();
  }
  /// Gives the slots their memory: bytes() of it.
  void place(std::byte* memory) { memory_ = memory; }

  /// Where a kernel writes a part.
  Partial part(const WaitingPart& part) const;
  /// Merges into the accumulator.
  void merge(const std::vector<MergeCall>& calls, StepMath& math, Stream stream) const;
  /// Merges into `to`, which is the buffer's `box`, and into the lse.
  void deliver(const std::vector<MergeCall>& calls, const TensorView& to, const Box& box,
               StepMath& math, Stream stream) const;

 private:
  std::int64_t tensor_bytes() const;
  std::int64_t lse_bytes() const;
  int first_tensor_slot() const { return result_.data != nullptr ? 1 : 0; }
  std::int64_t tensor_slots() const { return std::max(queue_.slots() - first_tensor_slot(), 0); }
  int first_lse_slot() const;
  void call(const MergeCall& call, const TensorView& to, StepMath& math, Stream stream) const;

  TensorView accumulator_;
  LseView lse_;
  DType dtype_;
  bool whole_heads_;
  TensorView result_;  ///< slot 0; no data: it has memory of its own
  MergeQueue queue_{static_cast<int>(StepMath::kMaxParts)};
  std::byte* memory_ = nullptr;
};

/// A box of a tensor or lse. It may reach beyond the view, where its memory does.
TensorView box_of(TensorView tensor, const Box& box);
LseView box_of(LseView lse, const Box& box);

}  // namespace longca
