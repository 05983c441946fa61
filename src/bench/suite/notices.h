#pragma once

#include <span>
#include <string>

#include "bench/suite/axes.h"
#include "bench/suite/cases.h"

namespace longca {

// What a run says about cells that its command line does not spell out: one line each.

/// The values that cells have on the axes not `given`: "kernel=naive,flash tokens=2048
/// window=1024". Axes that no cell has are left out; of more than four values their number is
/// given.
std::string describe_defaults(std::span<const Case> cases, const AxisValues& given);

/// How many cells an exception of the suite left out, and why: of several reasons the one of the
/// most cells. "" if there are none.
std::string describe_skipped(const Suite& suite, const CaseList& list);

}  // namespace longca
