#pragma once

#include <cstdint>

#include "attention/reference/cuda/device_results.h"
#include "attention/reference/passes.h"

namespace longca {

/// Checks the GPU reference against float64: a few rows of one query head and keys of its KV head,
/// drawn from the seed within the drawn tiles and always with the last, are recomputed on the host
/// (float64_samples.h) and must agree within the noise of float32 sums, which grows with √terms; a
/// mask fault or a missing tile is far above it. Keys use the rows' lse and delta that the
/// reference used. Throws InternalError if they disagree.
void check_forward_samples(const ReferenceProblem& problem, const DeviceResults& results,
                           std::uint64_t seed);
void check_gradient_samples(const ReferenceProblem& problem, const DeviceResults& results,
                            std::uint64_t seed);

}  // namespace longca
