#pragma once

#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// Some heads of some rows of a buffer.
struct Box {
  Range rows;
  Range heads;
  bool operator==(const Box&) const = default;
};

/// A partial result of a box that waits to be merged, in one of the slots for it.
struct WaitingPart {
  int slot = 0;
  Box box;
  bool operator==(const WaitingPart&) const = default;
};

/// One pass over a box: all that waits for it, and the accumulator's values if it has any.
struct MergeCall {
  Box box;
  std::vector<WaitingPart> parts;
  bool accumulator = false;
  bool operator==(const MergeCall&) const = default;
};

/// When the partial results of a buffer are merged: as late as may be, so that most rows are read
/// and written once, at their end, and never as float32. A buffer has as many slots as parts can be
/// merged at once; each part takes one, where no other of the same rows and heads waits.
class MergeQueue {
 public:
  explicit MergeQueue(int most_slots) : most_slots_(most_slots) {}

  /// The slot of a new part, and what must be merged into the accumulator to make it free.
  struct Added {
    int slot = 0;
    std::vector<MergeCall> before;
  };
  Added add(const Box& box);

  /// What gives the result of `box`, piece by piece; a piece without parts and accumulator has seen
  /// nothing.
  std::vector<MergeCall> finish(const Box& box) const { return pieces(box); }

  /// Whether a part was merged into the accumulator before the end.
  bool merges_early() const { return !merged_.empty(); }

  /// How many slots were ever used.
  int slots() const { return slots_; }

 private:
  std::vector<MergeCall> pieces(const Box& box) const;

  int most_slots_;
  int slots_ = 0;
  std::vector<WaitingPart> waiting_;
  std::vector<Box> merged_;  ///< where the accumulator has a value; in no order, may overlap
};

}  // namespace longca
