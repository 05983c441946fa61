#pragma once

#include <memory>

#include "parallel/executor/lane_times.h"

namespace longca {

/// Events that keep time, on either side of an op in its lane's stream.
std::unique_ptr<LaneTimes> make_cuda_lane_times();

}  // namespace longca
