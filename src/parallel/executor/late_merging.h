#pragma once

#include <optional>
#include <vector>

#include "parallel/executor/merge_queue.h"
#include "parallel/plan/plan.h"

namespace longca {

/// Finds the float32 buffers of one pass (o with its lse, or dq) whose partial results may be
/// merged late: nothing else reads them before the Convert of what the steps wrote.
class LateMerging {
 public:
  /// `plan` and `ops` must outlive this object. `whole_heads`: allows only buffers to which every
  /// step writes all heads, so that rows have no gaps.
  LateMerging(const RankPlan& plan, const std::vector<Op>& ops, bool whole_heads);
  bool allowed(int buffer) const { return allowed_[static_cast<std::size_t>(buffer)]; }
  /// Before an op's part of `region`, of an allowed buffer, is added to the queue: joins it with
  /// the earlier part (MergeQueue::joint), for a kernel to merge, if no place of the region is
  /// written by more than two ops; of the buffer, if the part takes other places of the slot too,
  /// which a later one would need. So results are rounded as often as by a pass that merges them.
  /// `whole`: only if the earlier part has all rows and heads of the region.
  std::optional<MergeQueue::Joint> join(MergeQueue& queue, const Region& region, bool whole) const;
  /// Whether an allowed buffer is converted into one region of another buffer that nothing else
  /// touches until the last Convert: steps may then write there directly.
  bool has_one_place(int buffer) const;

 private:
  struct Uses {
    std::vector<Region> written, converted;
    std::vector<Region> places;  ///< targets of `converted`, in its order
    std::size_t last_op = 0;     ///< the last Convert
    /// For an o: the buffer of its lse, and the offset from o's heads to lse's.
    std::optional<Region> lse;
  };
  void forbid(const Region& region) { allowed_[static_cast<std::size_t>(region.buffer)] = false; }
  /// Whether some place of `region` is written by more than two ops.
  bool meets_three(const Region& region) const;
  Uses& uses_of(const Region& region) { return uses_[static_cast<std::size_t>(region.buffer)]; }
  void note_write(const Region& into, bool first);
  void note_op(std::size_t index);
  /// Forbids an o unless its lse lies alike in all steps.
  void note_lse(const Region& o, const Region& lse);
  /// Forbids buffers of which some written rows are never converted.
  void forbid_unfinished();
  /// Forbids an o whose lse another op reads: it is complete only after the last merge.
  void forbid_shared_lse();

  const RankPlan& plan_;
  const std::vector<Op>& ops_;
  std::vector<bool> allowed_;
  bool whole_heads_;
  std::vector<Uses> uses_;
};

}  // namespace longca
