#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What FlashInfer's block-sparse prefill for Hopper can do; known to every build.
Capabilities flashinfer_capabilities();
/// ok, or `unsupported` and why FlashInfer cannot express the problem; asks no GPU.
Support flashinfer_can_express(const Problem& problem, const Mask& mask);

/// FlashInfer's block-sparse prefill (Z. Ye et al., "FlashInfer: Efficient and Customizable
/// Attention Engine for LLM Inference Serving", 2025), compiled from its headers where the build
/// has found them.
std::unique_ptr<Kernel> make_flashinfer();

}  // namespace longca
