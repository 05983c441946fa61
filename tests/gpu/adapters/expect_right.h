#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "bench/cell/tensors.h"

namespace longca::testing {

/// Of the inputs that are compared.
inline constexpr std::uint64_t kInputSeed = 7;

/// Runs the kernel's passes that the problem has on the GPU, from poisoned outputs, and holds every
/// element to the reference: up to 1024 tokens the float64 one on the CPU, beyond that the GPU's.
void expect_right(const Kernel& kernel, const Problem& problem, const Mask& mask);

/// Compares what `outputs` holds; `inputs` are those of kInputSeed.
void expect_right(const Problem& problem, const Mask& mask, const Inputs& inputs,
                  const Outputs& outputs);

/// bfloat16 on the GPU, d 128, with gradients.
Problem gpu_problem(std::int64_t tokens, int heads_q, int heads_k);

/// A mask of the fourteen, with window, blocks and documents short enough for its tokens.
Mask small_mask(const std::string& name, const Problem& problem);

}  // namespace longca::testing
