#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Also in builds without FlashInfer.
Capabilities flashinfer_capabilities();
/// Whether FlashInfer can express the problem, or `unsupported` and the reason; needs no GPU.
Support flashinfer_can_express(const Problem& problem, const Mask& mask);

/// FlashInfer's block-sparse prefill for Hopper (Z. Ye et al., "FlashInfer: Efficient and
/// Customizable Attention Engine for LLM Inference Serving", 2025), compiled from its headers.
std::unique_ptr<Kernel> make_flashinfer();

}  // namespace longca
