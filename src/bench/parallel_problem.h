#pragma once

#include "bench/case.h"
#include "mask/generators.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// What the ranks of a case share, and how. The case is canonical and has a scheme; `generated` is
/// its mask.
ParallelProblem parallel_problem(const Case& c, const GeneratedMask& generated, int ranks_per_node);

}  // namespace longca
