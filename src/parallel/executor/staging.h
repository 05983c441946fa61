#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "parallel/executor/step_math.h"

namespace longca {

bool is_contiguous(const ConstTensorView& tensor);
bool is_contiguous(const ConstLseView& lse);

/// Memory that all steps of a rank share, one after the other: each lays out what it needs from the
/// beginning.
class Scratch {
 public:
  /// Begins the layout of a step.
  void restart() { used_ = 0; }
  /// Room of the step, as its offset.
  std::int64_t take(std::int64_t bytes);
  /// Allocates for the step that needs most.
  void allocate(MemoryTracker& memory);
  std::byte* at(std::int64_t offset) const { return buffer_.as<std::byte>() + offset; }
  std::int64_t bytes() const { return most_; }

 private:
  std::int64_t used_ = 0;
  std::int64_t most_ = 0;
  Buffer buffer_;
};

/// A tensor of a step and the one that a kernel is given in its place: itself, or a contiguous one
/// in the scratch.
struct StagedTensor {
  TensorView own;
  TensorView used;
  std::int64_t offset = -1;  ///< in the scratch; −1: itself

  bool staged() const { return offset >= 0; }
  /// Itself, until it is moved.
  static StagedTensor itself(const TensorView& own) { return {own, own, -1}; }
  static StagedTensor in(Scratch& scratch, const TensorView& own, DType dtype);
  void place(const Scratch& scratch);
};

struct StagedLse {
  LseView own;
  LseView used;
  std::int64_t offset = -1;

  bool staged() const { return offset >= 0; }
  static StagedLse itself(const LseView& own) { return {own, own, -1}; }
  static StagedLse in(Scratch& scratch, const LseView& own);
  void place(const Scratch& scratch);
};

}  // namespace longca
