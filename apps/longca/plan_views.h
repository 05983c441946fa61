#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/suite/case.h"

namespace longca {

/// Throws InputError if --explain has more lines to print than anybody reads: a million. `amount`:
/// of what they are, "3 plans of 12 ranks in all".
void refuse_too_many_lines(std::string_view amount, std::int64_t lines);

/// Prints the plans of the cells, each once: every rank's, one line per step, and why a scheme has
/// none. Says before on stderr how many lines that will be, and throws InputError if more than a
/// million. Needs neither MPI nor a GPU.
void explain_plans(std::span<const Case> cases, int ranks_per_node);

/// Draws the plan that the cells share. Throws InputError if they are of several, or of one that
/// the scheme does not support.
void plot_plan_of(std::span<const Case> cases, int ranks_per_node, const std::string& file);

}  // namespace longca
