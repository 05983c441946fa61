#pragma once

#include <vector>

#include "simulate/cluster.h"
#include "simulate/engine.h"
#include "simulate/program.h"

namespace longca::simulate::testing {

/// When ops and messages end by SimGrid, in seconds since the pass began. An op that exchanges ends
/// with the last of its messages.
struct ReplayedEnds {
  std::vector<std::vector<double>> ops;  ///< by rank
  std::vector<double> messages;
};

/// SimGrid takes what happens within so many seconds as one event.
constexpr double kSimgridPrecision = 1e-12;

/// Replays a pass with SimGrid: ops and waits are Execs, messages are Comms, each begun by the end
/// of those before it; there are no actors. Where `followed` is not null, what waits for the end of
/// an op or a message waits for the end that this pass says, so that a difference of rounding does
/// not grow from message to message.
ReplayedEnds replay_with_simgrid(const Program& program, const Cluster& cluster,
                                 const SimulatedPass* followed);

}  // namespace longca::simulate::testing
