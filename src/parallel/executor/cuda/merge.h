#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "parallel/executor/step_math.h"

namespace longca {

/// StepMath::merge_all on the GPU. A group of lanes of one warp takes a row of one head, so that
/// its weights are computed where they are used; each input is read once. Arguments are as checked
/// by CudaStepMath; o has the dtype of the parts or float32.
void merge_partials(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                    const LseView& lse, cudaStream_t stream);

}  // namespace longca
