#pragma once

#include "parallel/executor/step_math.h"

namespace longca {

/// The arithmetic between steps on the GPU, each call one pass over its memory. Fast where rows,
/// strides and addresses are multiples of 16 bytes (8 for a 16-bit partial), right for all others.
StepMath& cuda_step_math();

}  // namespace longca
