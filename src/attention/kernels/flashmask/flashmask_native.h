#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What FlashMask can do; also in builds without it.
Capabilities flashmask_native_capabilities();
/// ok, or `unsupported` and why FlashMask cannot express the problem; asks no GPU.
Support flashmask_native_can_express(const Problem& problem, const Mask& mask);

/// FlashMask (G. Wang et al., "FlashMask: Efficient and Rich Mask Extension of FlashAttention",
/// 2024, arXiv 2410.01359): FlashAttention-2 under masks that give every key column at most two
/// intervals of masked query rows; the bounds of these intervals per key block tell which tiles are
/// skipped, tested cell by cell or computed as they are. On tensor cores by mma.sync, for compute
/// capability 8.0 and later. `shared_bytes` are what a CTA may have; 0 stands for what the
/// device gives.
std::unique_ptr<Kernel> make_flashmask_native();
std::unique_ptr<Kernel> make_flashmask_native(int shared_bytes);

}  // namespace longca
