#pragma once

#include <cstdint>

#include "attention/inputs.h"
#include "core/device.h"
#include "core/tensor.h"

namespace longca {

/// Queues the drawing of `count` float32 or bfloat16 elements on the GPU, those from `first` on of
/// the tensor `id`: the values of draw_normal to the bit, rounded as BFloat16(float) rounds.
void cuda_draw_normal(void* to, DType dtype, std::int64_t first, std::int64_t count,
                      std::uint64_t seed, InputTensor id, Stream stream);

}  // namespace longca
