#pragma once

#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// Also in builds without cuDNN.
Capabilities cudnn_capabilities();
/// Whether cuDNN can express the problem, or `unsupported` and the reason; needs no GPU.
Support cudnn_can_express(const Problem& problem, const Mask& mask);

/// cuDNN's fused attention by its C++ frontend; cuDNN is loaded at run time.
std::unique_ptr<Kernel> make_cudnn();

}  // namespace longca
