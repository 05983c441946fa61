#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What cuDNN's fused attention can do; also in builds without it.
Capabilities cudnn_capabilities();
/// ok, or `unsupported` and why cuDNN cannot express the problem; asks no GPU.
Support cudnn_can_express(const Problem& problem, const Mask& mask);

/// cuDNN's fused attention through its C++ frontend; the library is loaded at run time.
std::unique_ptr<Kernel> make_cudnn();

}  // namespace longca
