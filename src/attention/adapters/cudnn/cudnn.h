#pragma once

#include <memory>

#include "attention/kernel.h"

namespace longca {

/// What cuDNN's fused attention can do; also in builds without it.
Capabilities cudnn_capabilities();
/// ok, or `unsupported` and why cuDNN has no words for the problem; asks no GPU.
Support cudnn_expresses(const Problem& problem, const Mask& mask);

/// cuDNN's fused attention through its C++ frontend; the library is loaded at run time.
std::unique_ptr<Kernel> make_cudnn();

}  // namespace longca
