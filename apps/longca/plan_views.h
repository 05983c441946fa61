#pragma once

#include <span>
#include <string>

#include "bench/suite/case.h"

namespace longca {

/// Prints the plans of the cells, each once: every rank's, one line per step, and why a scheme has
/// none. Says before on stderr how many lines that will be, and throws InputError if more than a
/// million. Needs neither MPI nor a GPU.
void explain_plans(std::span<const Case> cases, int ranks_per_node);

/// Draws the plan that the cells share. Throws InputError if they are of several, or of one that
/// the scheme does not support.
void plot_plan_of(std::span<const Case> cases, int ranks_per_node, const std::string& file);

}  // namespace longca
