#pragma once

#include <memory>

#include "parallel/executor/executor.h"

namespace longca {

/// The compute lane is the caller's stream; the communication lane is a stream of its own with the
/// highest priority, so that its copies and small kernels are scheduled first where both could go
/// on. An op that somebody waits for has an event; nothing waits on the host.
std::unique_ptr<DeviceLanes> make_cuda_lanes();

}  // namespace longca
