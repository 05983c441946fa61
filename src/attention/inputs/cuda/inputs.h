#pragma once

#include <cstdint>

#include "attention/inputs/inputs.h"
#include "core/device.h"
#include "core/tensor.h"

namespace longca {

/// Where an element of a tensor lies, for the topics of clustered inputs.
struct TopicShape {
  std::int64_t heads = 1;
  std::int64_t dim = 1;
  std::int64_t heads_k = 0;  ///< of the problem; 0: the inputs are not clustered
};

/// Queues the drawing of `count` float32 or bfloat16 elements on the GPU, those from `first` on of
/// the tensor `id`: the values of draw_normal to the bit, shifted by their topics, rounded as
/// BFloat16(float) rounds.
void cuda_draw_normal(void* to, DType dtype, std::int64_t first, std::int64_t count,
                      std::uint64_t seed, InputTensor id, const TopicShape& topics, Stream stream);

}  // namespace longca
