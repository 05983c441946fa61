#pragma once

#include <cstdint>

#include "attention/reference/cuda/device_results.h"
#include "attention/reference/passes.h"

namespace longca {

/// Holds the reference on the GPU to float64: a few rows of one query head, a few keys of its KV
/// head, drawn from the seed, the last ones among them, are computed on the host from the inputs
/// (float64_samples.h) and must agree within the noise of float32 sums, which grows with √terms;
/// a mask's fault or a lost tile is far above it. Of tiles drawn they are rows and keys of these.
/// Throws InternalError with a sentence if not. The keys use lse and delta of the rows that the
/// reference used: its own, which the rows hold, or those of a kernel's forward pass.
void check_forward_samples(const ReferenceProblem& problem, const DeviceResults& results,
                           std::uint64_t seed);
void check_gradient_samples(const ReferenceProblem& problem, const DeviceResults& results,
                            std::uint64_t seed);

}  // namespace longca
