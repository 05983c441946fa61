#pragma once

#include <span>

#include "attention/reference/verifier.h"
#include "bench/cell_tensors.h"
#include "parallel/executor/executor.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Brings the results of these roles and heads (the same on all ranks) from all ranks into rank 0's
/// tensors of the whole problem (`whole`, null elsewhere), over the host. What no rank has stays as
/// it is there. Collective.
void gather_results(RankControl& control, Device& device, const RankPlan& plan,
                    const Executor& executor, std::span<const TensorRole> roles,
                    const CheckedHeads& heads, const Outputs* whole);

/// Rank 0's, on every rank. Collective.
CheckedHeads broadcast(RankControl& control, const CheckedHeads& heads);

}  // namespace longca
