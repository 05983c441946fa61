#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What `naive` on a GPU can do; also in builds without it.
Capabilities naive_cuda_capabilities();

/// Scores, softmax, product, each a pass over the whole [heads, queries, keys] matrix in device
/// memory: what attention costs when nothing is fused. Products by cuBLAS.
std::unique_ptr<Kernel> make_naive_cuda();

}  // namespace longca
