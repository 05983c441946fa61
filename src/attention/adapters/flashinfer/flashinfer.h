#pragma once

#include <memory>

#include "attention/adapters/flashinfer/form.h"

namespace longca {

/// FlashInfer's block-sparse prefill (Z. Ye et al., "FlashInfer: Efficient and Customizable
/// Attention Engine for LLM Inference Serving", 2025), compiled from its headers. Builds that have
/// found them.
std::unique_ptr<Kernel> make_flashinfer();

}  // namespace longca
