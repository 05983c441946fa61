#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/device.h"
#include "core/status.h"

namespace longca {

/// The GPU that this process uses: number $LONGCA_DEVICE, else 0, of CUDA's visible devices. Null
/// if there is none or in a build without CUDA; `support` says why.
std::unique_ptr<Device> make_cuda_device(Support& support);

/// Number of visible GPUs; 0 in a build without CUDA.
int count_cuda_devices();

/// Device::negate on `stream`.
void cuda_negate(std::span<const HeadColumn> columns, Stream stream);

/// A 64-bit hash of device memory: the sum of every 8-byte word (the last one zero-padded) mixed
/// with its index, independent of the order of threads. Waits for the stream.
std::uint64_t cuda_hash(std::uint64_t seed, const void* data, std::int64_t bytes, Stream stream);
/// Adds a hash to `to`, in device memory, in order on the stream; asynchronous.
void cuda_hash_later(std::uint64_t seed, const void* data, std::int64_t bytes,
                     unsigned long long* to, Stream stream);

}  // namespace longca
