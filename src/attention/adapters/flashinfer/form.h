#pragma once

#include "attention/api/kernel.h"

namespace longca {

/// What FlashInfer's block-sparse prefill for Hopper can do; known to every build.
Capabilities flashinfer_capabilities();
Support flashinfer_can_express(const Problem& problem, const Mask& mask);

}  // namespace longca
