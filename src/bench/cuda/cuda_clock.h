#pragma once

#include <memory>

#include "bench/device_clock.h"

namespace longca {

/// The clock of the GPU that this process works on: events on its stream, which is held back until
/// the work between them is queued.
std::unique_ptr<DeviceClock> make_cuda_clock();

}  // namespace longca
