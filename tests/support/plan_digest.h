#pragma once

#include "parallel/plan/plan.h"
#include "support/digest.h"

namespace longca {

/// Everything that a plan makes a rank do; not the names of its buffers and its notes, which are
/// words for readers.
void digest(testing::Digest& out, const RankPlan& plan);

}  // namespace longca
