#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace longca::testing {

/// Queues a kernel that runs for `ns` of the device's timer.
void queue_spin(std::int64_t ns, cudaStream_t stream);
/// Queues a kernel that adds one to a counter in device memory.
void queue_count(int* counter, cudaStream_t stream);

}  // namespace longca::testing
