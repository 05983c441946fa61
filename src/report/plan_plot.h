#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "parallel/plan/timeline.h"

namespace longca {

/// Draws what ranks do over time (parallel/plan/timeline.h), the backward pass behind the forward
/// one: a row per rank, computing above, messages below, colours for steps, cells and bytes in the
/// bars where they fit. The suffix of `file` chooses the format: .png, .svg or .pdf. Throws
/// InputError for another suffix, if gnuplot is not installed, or if the file cannot be written.
void plot_plan(std::span<const RankPlan> plans, int head_dim, DType dtype, const PlanRates& rates,
               const std::string& title, const std::filesystem::path& file);

}  // namespace longca
