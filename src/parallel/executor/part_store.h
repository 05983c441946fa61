#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor.h"
#include "parallel/executor/merge_queue.h"
#include "parallel/executor/step_math.h"

namespace longca {

/// Holds and merges the partial results of one float32 buffer that is merged late: o with its lse
/// by StepMath::merge_all, dq by StepMath::sum_all. A slot is an image of the buffer in the
/// problem's dtype, where a part and its lse lie at their own coordinates; with whole heads they
/// are contiguous. Slot 0 may be the result itself: rows that a single step writes are then final.
class PartStore {
 public:
  /// `accumulator`: the whole buffer; `lse`: of the same rows and heads, without data for dq.
  PartStore(const TensorView& accumulator, const LseView& lse, DType dtype, bool whole_heads)
      : accumulator_(accumulator), lse_(lse), dtype_(dtype), whole_heads_(whole_heads) {}

  MergeQueue& queue() { return queue_; }
  /// Makes `result`, where the whole buffer is delivered in the problem's dtype, slot 0. Nothing
  /// else may touch it before; contiguous if `whole_heads`. Call before bytes().
  void write_through(const TensorView& result) { result_ = result; }

  std::int64_t bytes() const {
    return tensor_slots() * tensor_bytes() + (queue_.slots() - first_lse_slot()) * lse_bytes();
  }
  /// Sets the memory of the slots, bytes() of it.
  void place(std::byte* memory) { memory_ = memory; }

  /// Returns the view into which a kernel writes a part.
  Partial part(const WaitingPart& part) const;
  /// Merges into the accumulator.
  void merge(const std::vector<MergeCall>& calls, StepMath& math, Stream stream) const;
  /// Merges into `to`, the result of `box`, and into the lse.
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
  TensorView result_;  ///< slot 0; without data slot 0 has memory of its own
  MergeQueue queue_{static_cast<int>(StepMath::kMaxParts)};
  std::byte* memory_ = nullptr;
};

/// `box` in coordinates relative to `from`.
Box inside(const Box& from, const Box& box);
/// The view of a box, which may reach outside of `tensor` as long as memory is there.
TensorView box_of(TensorView tensor, const Box& box);
LseView box_of(LseView lse, const Box& box);

}  // namespace longca
