#pragma once

#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// Copies of tensors, or Totals, that may be made in one pass: consecutive ops of one kind on the
/// compute lane, none of which touches what another one of them writes, or waits for an op that the
/// first does not wait for. Copies of lse stay alone.
class OpRuns {
 public:
  OpRuns(const RankPlan& plan, const std::vector<Op>& ops);
  /// The first op of the run that `op` belongs to; itself if it begins one or is of another kind.
  int first(int op) const { return first_[static_cast<std::size_t>(op)]; }

 private:
  std::vector<int> first_;  ///< by op
};

}  // namespace longca
