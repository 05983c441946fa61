#pragma once

#include <memory>

#include "parallel/transport/communicator.h"
#include "parallel/transport/transports.h"

namespace longca {

/// Messages inside one host: the sender's copy engines push rows straight into the receiver's
/// memory, strided ones too, without staging and without SMs. A group that runs while nothing
/// computes is written by one kernel instead, all messages at once. Sequence numbers in device
/// memory (handshake.h), queued on the stream of `start`, order them without the host:
///   - the receiver writes an exchange's number to its senders once its stream has reached the
///     point where its buffers may be overwritten;
///   - the sender waits for the numbers of all its receivers, pushes its messages one by one, and
///     writes the number to each receiver after the data;
///   - the receiver's stream waits for the numbers of all its senders.
/// An exchange between two ranks is one group on both sides (checked by `prepare`). All ranks start
/// groups in the same order, on one stream at a time. The connections keep memory of communicators
/// that ended, mapped, for those that follow. Collective.
std::unique_ptr<CudaConnections> make_peer_connections(RankMessages& control);

}  // namespace longca
