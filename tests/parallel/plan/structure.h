#pragma once

#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca::testing {

/// Adds what breaks the promises of plan.h within one rank's plan: indices outside, shapes and
/// element types that do not fit, ops on the wrong lane, waiting for later ops, writing the
/// caller's inputs. Without a fault here, the plan can be run on symbols.
void check_structure(const RankPlan& plan, std::vector<std::string>& faults);

/// Adds pairs of ops of one list that touch the same elements, one of them writing, and that
/// neither lanes nor `after` put in order; and ops that write what they read.
void check_races(const RankPlan& plan, bool backward, std::vector<std::string>& faults);

}  // namespace longca::testing
