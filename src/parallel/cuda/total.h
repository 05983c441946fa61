#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "parallel/executor/step_math.h"

namespace longca {

/// StepMath::total on the GPU in one launch (of many parts, several): every row is read once from
/// each part that reaches it and written once. False, and nothing is queued, where a tensor has
/// gaps between rows or is not aligned to four elements.
[[nodiscard]] bool total_tensors(std::span<const RowsOfSum> parts, const TensorView& to,
                                 cudaStream_t stream);

}  // namespace longca
