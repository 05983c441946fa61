#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/status.h"

namespace longca {

/// A 32-bit word of device memory, this GPU's or a peer's, that a stream writes or waits for
/// without the host and without an SM.
struct StreamValue {
  enum class What : std::uint8_t {
    write,  ///< after all that the stream did before is visible to every GPU
    wait,   ///< until the word has come to `value` or is past it, counted modulo 2³²
  };
  What what = What::write;
  std::uint32_t* word = nullptr;
  std::uint32_t value = 0;
};

/// Whether the driver has the calls; else `unavailable`.
Support stream_values_available();

/// Queues them in this order.
void queue_values(std::span<const StreamValue> values, cudaStream_t stream);
}  // namespace longca
