#pragma once

#include <memory>

#include "parallel/transport/communicator.h"

namespace longca {

/// Messages inside one host, pushed by the sender's copy engines straight into the receiver's
/// memory, rows with gaps as they are: no staging, and no SM is taken from the kernels. Groups that
/// leave while nothing is computed are written by a kernel instead, all messages at once. Numbers
/// in device memory order them, all queued on the stream of `start`, none waits on the host:
///   - the receiver writes the number of an exchange into the memory of those that send to it, once
///     its stream has come so far that its buffers may be overwritten;
///   - a sender waits for the numbers of all its receivers, pushes one message after the other, and
///     writes the number into their memory;
///   - the receiver waits for all of these.
/// An exchange of one rank with another is one group on both sides (checked by `prepare`). Groups
/// are started in one order on all ranks and on one stream at a time. Collective.
std::unique_ptr<Communicator> make_peer_communicator(RankControl& control);

}  // namespace longca
