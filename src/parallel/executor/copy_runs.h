#pragma once

#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// Copies of tensors that may be made in one pass: consecutive ops of the compute lane, none of
/// which touches what another one of them writes, or waits for an op that the first does not wait
/// for. Those of lse stay alone.
class CopyRuns {
 public:
  CopyRuns(const RankPlan& plan, const std::vector<Op>& ops);
  /// The first copy of the run that `op`, a copy, belongs to; itself if it begins one.
  int first(int op) const { return first_[static_cast<std::size_t>(op)]; }

 private:
  std::vector<int> first_;  ///< by op
};

}  // namespace longca
