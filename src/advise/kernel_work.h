#pragma once

#include "advise/work.h"
#include "attention/api/kernel.h"
#include "bench/suite/case.h"

namespace longca::advise {

/// Bytes of a call's inputs and outputs and, of a backward pass, of what `kernel` says that it
/// takes beside them (BackwardBytes). `kernel` may be null, here and below: nothing is known of it
/// then. `work`: of the case's mask.
double known_bytes(const Kernel* kernel, const Case& c, const Work& work);

/// What `kernel` computes for a case: the work of its mask, in the way in which its capabilities
/// say that it divides it, and what they say of memory and time.
Work kernel_work(const Kernel* kernel, const Case& c, MaskFacts& masks);

}  // namespace longca::advise
