#pragma once

#include <span>

#include "attention/reference/verifier.h"
#include "bench/cell/tensors.h"
#include "parallel/executor/executor.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Gathers the ranks' results of these roles and heads, which are the same on all ranks, into rank
/// 0's tensors of the whole problem (`whole`, null on other ranks), through host memory. Elements
/// that no rank has keep their values. Collective.
void gather_results(RankControl& control, Device& device, const RankPlan& plan,
                    const Executor& executor, std::span<const TensorRole> roles,
                    const CheckedHeads& heads, const Outputs* whole);

/// Adds up the ranks' parts of dsink, [1, heads, 1] float32 each, into rank 0's `whole` (null on
/// other ranks). Collective.
void gather_sink_gradients(RankControl& control, Device& device, const TensorView& part,
                           const Outputs* whole);

/// Returns rank 0's `heads` on every rank. Collective.
CheckedHeads broadcast(RankControl& control, const CheckedHeads& heads);

}  // namespace longca
