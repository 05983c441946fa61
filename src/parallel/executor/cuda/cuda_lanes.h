#pragma once

#include <memory>

#include "parallel/executor/lanes.h"

namespace longca {

/// The compute lane is the caller's stream; the communication lane is a stream of its own with the
/// highest priority, so that its copies and small kernels are scheduled first. The lanes wait for
/// each other by events; the host never waits.
std::unique_ptr<DeviceLanes> make_cuda_lanes();

std::unique_ptr<StreamMark> make_cuda_mark();

/// Records timed events before and after each op in its lane's stream.
std::unique_ptr<LaneTimes> make_cuda_lane_times();

}  // namespace longca
