#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace longca {

/// A 64-bit hash of device memory: every 8-byte word (the last one padded with zeros) is mixed with
/// its place, and the sum taken, so that the order of threads does not matter. Waits for the
/// stream.
std::uint64_t cuda_hash(std::uint64_t seed, const void* data, std::int64_t bytes,
                        cudaStream_t stream);

}  // namespace longca
