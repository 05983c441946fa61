#pragma once

#include <span>
#include <string>

#include "calibrate/platform_check.h"
#include "cost/platform.h"

namespace longca::calibrate {

/// The figures that were measured, a line each with its spread, the curves over sizes of messages
/// side by side, then the sections of which nothing was.
std::string describe_platform(const cost::Platform& platform);

/// A line for each figure, those that moved first, and how many did. Points of curves that have not
/// moved are counted.
std::string describe_check(const std::string& page, std::span<const CheckedFigure> figures);

}  // namespace longca::calibrate
