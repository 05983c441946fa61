#pragma once

#include <string>

#include "parallel/transport/communicator.h"

namespace longca::testing {

/// Collective checks of a communicator; each throws on the ranks where something is wrong, with
/// what was found. `control` is the ranks' own.
void check_random_exchanges(Communicator& communicator, RankControl& control);
/// Data passed on around the ring through two buffers, many times, by ranks that are late in turn.
void check_relay(Communicator& communicator);
/// Over `peer`: what may land early leaves while its receiver does something else.
void check_early_landing(Communicator& communicator, RankControl& control);
void check_barrier(Communicator& communicator, RankControl& control);

}  // namespace longca::testing
