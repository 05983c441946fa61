#pragma once

#include "parallel/executor/step_math.h"

namespace longca {

/// The arithmetic between steps on the CPU, on all threads of ThreadPool::global(); float32 and
/// bfloat16.
StepMath& cpu_step_math();

}  // namespace longca
