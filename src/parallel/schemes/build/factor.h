#pragma once

#include "core/status.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How many ranks share the heads in a scheme with both dimensions: the factor asked for, else the
/// largest divisor of the ranks that divides the KV heads and fits in a node. An exchange of heads
/// moves fewer bytes than a ring but cannot be hidden, so it belongs on the links inside a node;
/// more ways than KV heads would replicate these and save a ring nothing.
int head_ways(const ParallelProblem& problem);

/// `unsupported` without a rank, or where v has a dimension of its own, since the plans' bytes are
/// of one: the only conditions of schemes that do not share heads.
Support check_ranks(const ParallelProblem& problem);

/// `unsupported` unless the factor divides the ranks and the heads allow it.
Support check_factor(const ParallelProblem& problem);

}  // namespace longca
