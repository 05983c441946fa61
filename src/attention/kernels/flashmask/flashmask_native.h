#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Also in builds without CUDA.
Capabilities flashmask_native_capabilities();
/// Whether FlashMask can express the problem, or `unsupported` and the reason; needs no GPU.
Support flashmask_native_can_express(const Problem& problem, const Mask& mask);

/// FlashMask (G. Wang et al., "FlashMask: Efficient and Rich Mask Extension of FlashAttention",
/// 2024, arXiv 2410.01359): FlashAttention-2 for masks with at most two intervals of masked query
/// rows per key column, whose bounds per key block classify tiles as skipped, partial or full.
/// mma.sync, for compute capability 8.0 and later. `shared_bytes` limits shared memory per CTA; 0
/// means the device's limit.
std::unique_ptr<Kernel> make_flashmask_native();
std::unique_ptr<Kernel> make_flashmask_native(int shared_bytes);

}  // namespace longca
