#pragma once

#include <span>

#include "bench/cell_tensors.h"
#include "parallel/comm/communicator.h"
#include "parallel/executor/executor.h"
#include "parallel/plan/plan.h"

namespace longca {

/// Brings the results of these roles from all ranks into rank 0's tensors of the whole problem
/// (`whole`, null elsewhere), over the host. What no rank has stays as it is there. Collective.
void gather_results(RankControl& control, Device& device, const RankPlan& plan,
                    const Executor& executor, std::span<const TensorRole> roles,
                    const Outputs* whole);

/// Whether the plan says where results of this role lie on this rank.
bool has_result(const RankPlan& plan, TensorRole role);

}  // namespace longca
