#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "parallel/plan/timeline.h"

namespace longca {

/// Draws the timeline of a plan (parallel/plan/timeline.h), the backward pass after the forward
/// pass: a row per rank, computation above, messages below, a colour per step, cells and bytes
/// inside the bars that are wide enough. The suffix of `file` chooses the format: .png, .svg or
/// .pdf. Throws InputError for another suffix, if gnuplot is not installed, or if the file cannot
/// be written.
void plot_plan(std::span<const RankPlan> plans, int head_dim, DType dtype, const PlanRates& rates,
               const std::string& title, const std::filesystem::path& file);

}  // namespace longca
