#pragma once

#include <cstdint>

#include "attention/inputs.h"
#include "core/device.h"
#include "core/tensor.h"

namespace longca {

/// Queues the drawing of a contiguous float32 or bfloat16 tensor on the GPU: the values of
/// draw_normal to the bit, rounded as BFloat16(float) rounds.
void cuda_draw_normal(const TensorView& tensor, std::uint64_t seed, InputTensor id, Stream stream);

}  // namespace longca
