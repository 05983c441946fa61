#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace longca {

/// What `call` queues on `stream`, recorded as a CUDA graph; the function returned replays it
/// there. Throws GraphRefused (device_clock.h) for a call that does what a capture forbids, such as
/// waiting for the device or taking memory, or that queues nothing on this stream.
std::function<void()> capture_graph(const std::function<void()>& call, cudaStream_t stream);

}  // namespace longca
