#pragma once

#include <vector>

#include "mask/slice.h"

namespace longca {

/// A partial result of some rows that waits to be merged, in one of the slots for them.
struct WaitingPart {
  int slot = 0;
  Range rows;
  bool operator==(const WaitingPart&) const = default;
};

/// One pass over some rows: all that waits for them, and the accumulator's values if it has any.
struct MergeCall {
  Range rows;
  std::vector<WaitingPart> parts;
  bool accumulator = false;
  bool operator==(const MergeCall&) const = default;
};

/// When the partial results of a buffer's rows are merged: as late as may be, so that most rows are
/// read and written once, at their end, and never as float32. A buffer has as many slots as parts
/// can be merged at once; each part takes one, where no other of the same rows waits.
class MergeQueue {
 public:
  explicit MergeQueue(int most_slots) : most_slots_(most_slots) {}

  /// The slot of a new part, and what must be merged into the accumulator to make it free.
  struct Added {
    int slot = 0;
    std::vector<MergeCall> before;
  };
  Added add(Range rows);

  /// What gives the result of `rows`, piece by piece, ascending; a piece without parts and
  /// accumulator has seen nothing.
  std::vector<MergeCall> finish(Range rows) const;

  /// How many slots were ever used.
  int slots() const { return slots_; }

 private:
  std::vector<MergeCall> pieces(Range rows) const;

  int most_slots_;
  int slots_ = 0;
  std::vector<WaitingPart> waiting_;
  std::vector<Range> merged_;  ///< rows whose accumulator has a value; in no order, may overlap
};

}  // namespace longca
