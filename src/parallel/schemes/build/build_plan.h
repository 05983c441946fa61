#pragma once

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How keys reach the queries of other CP ranks.
enum class ContextKind : std::uint8_t {
  ring,        ///< from CP rank to CP rank (Ring)
  all_gather,  ///< all keys, directly from their owners (Cast)
  group_cast,  ///< directly from their owners, only keys that the receiver's queries see (Cast)
};

/// What distinguishes the schemes: the grid of ranks (heads × context), and how keys travel between
/// CP ranks.
struct Composition {
  GridShape shape;
  ContextKind context = ContextKind::ring;
  /// CP ranks per window of a double ring, a divisor of their number; 0: all, a plain ring.
  int window = 0;
};

/// The plan of one rank. Communication overlaps with computing: a step's exchange is listed before
/// the calls of the previous step. In both passes:
///
/// 1. heads are exchanged, chunk by chunk (head_layout.h); no op if members = 1;
/// 2. keys arrive step by step (context_exchange.h) and each chunk of heads is computed on them;
/// 3. in the last step each chunk's result is sent while the next chunk is computed;
/// 4. in the backward pass gradients of keys return to their owners; half of the work on the rank's
///    own keys is deferred to hide the last of these transfers (backward_pass.cpp).
///
/// A row with one Attend is written in the problem's dtype; one with several is summed in float32
/// and rounded once at the end. All gradients of a plan are of the same dtype, so that no kernel
/// call has accumulators of two dtypes.
RankPlan build_plan(const ParallelProblem& problem, const Composition& composition, int rank);

}  // namespace longca
