#pragma once

#include "attention/kernel.h"

namespace longca {

/// What FlashInfer's block-sparse prefill for Hopper can do; known to every build.
Capabilities flashinfer_capabilities();
Support flashinfer_expresses(const Problem& problem, const Mask& mask);

}  // namespace longca
