#pragma once

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How keys come to the queries of other CP ranks.
enum class ContextKind : std::uint8_t {
  ring,        ///< from CP rank to CP rank (Ring)
  all_gather,  ///< all of them, straight from their owners (Cast)
  group_cast,  ///< only those that are seen (Cast)
};

/// A scheme as the builder knows it: ranks in a grid heads × context, and how keys travel along the
/// context.
struct Composition {
  GridShape shape;
  ContextKind context = ContextKind::ring;
  /// CP ranks of a ring's window, a divisor of their number; 0: all.
  int window = 0;
};

/// The plan of one rank. Bringing, computing and sending overlap: what a turn needs is listed
/// before what the turn before computes. In both passes:
///
/// 1. heads are exchanged, chunk by chunk (head_layout.h); no op if members = 1;
/// 2. turn by turn keys arrive (context_exchange.h) and each chunk of heads is computed on them;
/// 3. in the last turn each chunk's result leaves while the next one is computed;
/// 4. in the backward pass the gradients of keys go home, the last of them while the half of the
/// own
///    turn is computed that waited for it (backward_pass.cpp).
///
/// Results are written straight in the problem's dtype where each row gets one Attend; otherwise in
/// a float32 accumulator, rounded once at the end. The gradients of one plan are all of the same
/// kind, so that no kernel call has accumulators of two types.
RankPlan build_plan(const ParallelProblem& problem, const Composition& composition, int rank);

}  // namespace longca
