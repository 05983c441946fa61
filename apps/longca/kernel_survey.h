#pragma once

#include <string>
#include <vector>

#include "attention/api/kernel.h"

namespace longca {

/// A kernel's support on this machine, asked mask by mask.
struct KernelSurvey {
  /// Masks that it supports here; if it does not run here, those that it can express.
  std::vector<std::string> masks;
  Support support;  ///< ok if it supports any here, else why not
};

/// Asks `kernel` about a small problem of each of the fourteen masks, in its first dtype and head
/// dimension, with gradients if it has any.
KernelSurvey survey_kernel(const Kernel& kernel);

}  // namespace longca
