#pragma once

#include "core/status.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// The number of ranks that divide the heads in a scheme of heads × context: the factor asked for,
/// else the largest divisor of ranks, KV heads and, where there are several, the ranks of a node,
/// so that none who divide the heads are on two. An exchange of heads moves fewer bytes than a ring
/// but cannot be hidden as well, so it belongs on the links inside a node; more ways than KV heads
/// would replicate these and save a ring nothing.
int head_ways(const ParallelProblem& problem);

/// `unsupported` for fewer than one rank, and where v's head dimension differs from that of q and
/// k, since plans have a single one. Schemes that do not divide heads have no other limit.
Support check_ranks(const ParallelProblem& problem);

/// `unsupported` unless the factor divides the ranks and the heads allow it.
Support check_factor(const ParallelProblem& problem);

}  // namespace longca
