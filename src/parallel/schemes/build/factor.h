#pragma once

#include "core/status.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How many ranks share the heads in a scheme of two dimensions: the factor asked for; else the
/// largest divisor of the ranks that divides the KV heads and is no larger than a node. Exchanging
/// heads moves less than a ring does, but all at once, so it wants the links inside a node; beyond
/// the KV heads these would have to be replicated, and each rank of a ring would move as much as
/// before.
int head_ways(const ParallelProblem& problem);

/// At least one rank; else `unsupported`. All that schemes without heads to share ask for.
Support check_ranks(const ParallelProblem& problem);

/// Whether the factor divides the ranks, and the heads allow it; else `unsupported`.
Support check_factor(const ParallelProblem& problem);

}  // namespace longca
