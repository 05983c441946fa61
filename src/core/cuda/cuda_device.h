#pragma once

#include <memory>

#include "core/device.h"
#include "core/status.h"

namespace longca {

/// The GPU that this process works on: the first that CUDA shows (CUDA_VISIBLE_DEVICES chooses), or
/// the one of $LONGCA_DEVICE. Null if there is none; `support` says why.
std::unique_ptr<Device> make_cuda_device(Support& support);

/// How many GPUs CUDA shows this process: 0 where there is none, or in a build without CUDA.
int count_cuda_devices();

}  // namespace longca
