#pragma once

#include <optional>
#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// A rectangle of a buffer: rows × heads.
struct Box {
  Range rows;
  Range heads;
  bool operator==(const Box&) const = default;
};

/// A partial result of a box, in one of the buffer's slots, that waits to be merged.
struct WaitingPart {
  int slot = 0;
  Box box;
  bool operator==(const WaitingPart&) const = default;
};

/// One merge of a box: of its waiting parts, and of the accumulator if it holds values there.
struct MergeCall {
  Box box;
  std::vector<WaitingPart> parts;
  bool accumulator = false;
  bool operator==(const MergeCall&) const = default;
};

/// Whether nothing is left to merge if slot 0 is the result itself: its one part lies there.
inline bool is_in_place(const MergeCall& call) {
  return !call.accumulator && call.parts.size() == 1 && call.parts.front().slot == 0;
}

/// Schedules the merging of a buffer's partial results as late as possible, so that most rows are
/// merged once, at the end, and never pass through float32 memory. A buffer has up to `max_slots`
/// slots, the number of parts that can be merged at once; a part takes the first slot in which no
/// waiting part overlaps it.
class MergeQueue {
 public:
  explicit MergeQueue(int max_slots) : max_slots_(max_slots) {}

  /// The slot of a new part, and the merges into the accumulator that must free it first.
  struct Added {
    int slot = 0;
    std::vector<MergeCall> before;
  };
  Added add(const Box& box);

  /// Where a new part can be merged at once with the one that waits there.
  struct Joint {
    int slot = 0;
    Box held;  ///< where that part is
    bool operator==(const Joint&) const = default;
  };
  /// For a new part of `box`, if no place of it has two parts, one in the accumulator or one in
  /// another slot than the others, and those that have one fill a rectangle. In another slot than
  /// the first, which may be the result, only if that is all of the box: what is written there
  /// alone would have to be copied.
  std::optional<Joint> joint(const Box& box) const;
  /// Adds a part of `box` that is merged so. One that adds no place cuts no pieces.
  void join(const Box& box, const Joint& joint) {
    if (joint.held != box) waiting_.push_back({joint.slot, box});
  }

  /// Returns the merges that give the result of `box`, piece by piece; a piece without parts and
  /// accumulator has no contribution.
  std::vector<MergeCall> finish(const Box& box) const { return pieces(box); }

  /// Whether any part is merged into the accumulator before `finish`.
  bool merges_early() const { return !merged_.empty(); }

  /// The number of slots used so far.
  int slots() const { return slots_; }

 private:
  std::vector<MergeCall> pieces(const Box& box) const;

  int max_slots_;
  int slots_ = 0;
  std::vector<WaitingPart> waiting_;  ///< those of a slot that overlap were joined
  std::vector<Box> merged_;  ///< where the accumulator holds values; unordered, may overlap
};

}  // namespace longca
