#pragma once

#include "core/dtype.h"
#include "cost/platform.h"
#include "parallel/plan/plan.h"
#include "simulate/kernel_times.h"
#include "simulate/program.h"

namespace longca::simulate {

/// What a plan's ops are timed by.
struct OpTimes {
  const KernelTimes* kernel = nullptr;       ///< never null
  const cost::Platform* platform = nullptr;  ///< passes over memory; never null
  int head_dim = 128;
  DType dtype = DType::bfloat16;
  /// Whether passes follow each other without a pause (mode `sustained`): calls then begin beside
  /// the end of those before, and are as long as at full clocks (settle_clocks).
  bool sustained = false;
  /// Whether the kernel's calls merge the one earlier result of their rows (can_merge_earlier).
  bool merges_earlier = false;
  bool adds_to_dq = false;  ///< Capabilities::adds_to_dq
};

/// One pass of a rank, as the executor runs it on a GPU: attention by the kernel's times, which are
/// slowed down as those of a run of repetitions with pauses, results merged and rounded by the
/// memory's, runs of copies and of totals by one kernel with the first of them, the row work of
/// later steps before the first wait.
RankWork lower(const RankPlan& plan, bool backward, const OpTimes& times);

}  // namespace longca::simulate
