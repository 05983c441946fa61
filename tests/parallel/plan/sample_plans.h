#pragma once

#include <vector>

#include "parallel/schemes/scheme.h"

namespace longca::testing {

/// The plans of all ranks of a simple scheme, for tests of what reads plans. Forward: K and V go
/// around a ring, two buffers each. Backward: they are gathered; partial dK and dV go to their
/// owners. Any mask, sharding and number of ranks; sub-masks are not trimmed.
std::vector<RankPlan> sample_plans(const ParallelProblem& problem);

/// A causal problem of 24 tokens, 4 heads on 2, dim 8, float32, with its backward pass, zigzag.
ParallelProblem sample_problem(int ranks);

}  // namespace longca::testing
