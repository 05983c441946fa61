#pragma once

#include <functional>

#include "parallel/transport/communicator.h"

namespace longca::testing {

/// Ranks as threads of this process that share one GPU: messages are copies in its memory, queued
/// on the receiver's stream between what the sender had queued and what it queues next. Where a
/// message will land there is NaN from the start of its exchange on. The host waits in `start`
/// until the other ends have started too, as one exchange after the other of a stream would.
/// Rethrows the first exception of a rank.
void run_gpu_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace longca::testing
