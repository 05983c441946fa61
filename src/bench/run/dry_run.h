#pragma once

#include <iosfwd>

#include "bench/suite/cases.h"
#include "bench/suite/suite.h"

namespace longca {

/// The most cells that a dry run lists one by one.
inline constexpr std::size_t kListedCells = 1000;

/// Lists cells without running them: FLOPs, an estimate of the memory (inputs, outputs and, where
/// these fit here, the reference; a kernel's workspace is not known before its plan), and why a
/// kernel will not run. `list` has the first kListedCells of the suite, whose size is `size`. Masks
/// are made for about a second; cells whose masks were not made show "-" instead of figures. The
/// run would repeat all cells `rounds` times.
void print_dry_run(std::ostream& out, const CaseList& list, const SuiteSize& size,
                   const RunLimits& limits, int rounds = 1);

}  // namespace longca
