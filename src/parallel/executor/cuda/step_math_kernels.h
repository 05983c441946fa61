#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <vector>

#include "parallel/executor/step_math.h"

namespace longca {

/// StepMath::merge_all on the GPU. A few lanes of a warp take one row of one head, so that its
/// weights are computed where they are used; every input is read once. CudaStepMath has checked the
/// arguments; o has the dtype of the parts or float32.
void merge_partials(std::span<const Partial> parts, const Partial& accumulator, const TensorView& o,
                    const LseView& lse, cudaStream_t stream);

/// StepMath::sum_all; with one part and no accumulator a conversion. All dtypes.
void sum_tensors(std::span<const ConstTensorView> parts, const ConstTensorView& accumulator,
                 const TensorView& to, cudaStream_t stream);

/// StepMath::total_all on the GPU in one launch (several for many parts): every row is read once
/// from each part that covers it, and written once. Returns the sums that it cannot do, with
/// nothing queued for them: a tensor has gaps between rows or is not aligned to four elements, or
/// more parts cover one row than a launch takes.
[[nodiscard]] std::vector<const SumOfRows*> total_tensors(std::span<const SumOfRows> sums,
                                                          cudaStream_t stream);

/// StepMath::join_sinks on the GPU.
void join_sinks_to_rows(const float* sink, const TensorView& o, const LseView& lse,
                        cudaStream_t stream);

}  // namespace longca
