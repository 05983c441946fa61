#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "core/status.h"

namespace longca {

/// A stream memory operation on a 32-bit word of this GPU's memory or a peer's; it needs neither
/// host nor SM.
struct StreamValue {
  enum class What : std::uint8_t {
    write,  ///< once all earlier work of the stream is visible to every GPU
    wait,   ///< until word − value, modulo 2³², is not negative as a signed number
  };
  What what = What::write;
  std::uint32_t* word = nullptr;
  std::uint32_t value = 0;
};

/// Ok if the driver has these operations, else `unavailable`.
Support stream_values_available();

/// Queues the operations in this order.
void queue_values(std::span<const StreamValue> values, cudaStream_t stream);
}  // namespace longca
