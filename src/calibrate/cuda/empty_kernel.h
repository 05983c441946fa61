#pragma once

#include <cuda_runtime_api.h>

namespace longca::calibrate {

/// Queues a kernel of one thread that does nothing.
void queue_empty_kernel(cudaStream_t stream);

}  // namespace longca::calibrate
