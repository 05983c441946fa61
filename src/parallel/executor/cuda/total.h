#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "parallel/executor/step_math.h"

namespace longca {

/// StepMath::total_all on the GPU in one launch (of many parts, several): every row is read once
/// from each part that reaches it and written once. Returns the sums that it leaves out, nothing
/// queued of them: where a tensor has gaps between rows or is not aligned to four elements, or more
/// parts reach one row than a launch takes.
[[nodiscard]] std::vector<const SumOfRows*> total_tensors(std::span<const SumOfRows> sums,
                                                          cudaStream_t stream);

}  // namespace longca
