#pragma once

#include "advise/work.h"
#include "attention/api/kernel.h"
#include "bench/suite/case.h"

namespace longca::advise {

/// Bytes of a call's inputs and outputs and, of a backward pass, of what `kernel` says that it
/// takes beside them (BackwardBytes). `kernel` may be null: nothing is known of it then. `work`: of
/// the case's mask.
double known_bytes(const Kernel* kernel, const Case& c, const Work& work);

}  // namespace longca::advise
