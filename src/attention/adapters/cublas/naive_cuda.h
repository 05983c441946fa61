#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Also in builds without CUDA.
Capabilities naive_cuda_capabilities();

/// Unfused attention: scores, softmax and product each are a pass over the whole [heads_q,
/// tokens_q, tokens_k] matrix in device memory. GEMMs by cuBLAS.
std::unique_ptr<Kernel> make_naive_cuda();

}  // namespace longca
