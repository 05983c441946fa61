#pragma once

#include <iosfwd>

#include "bench/suite/cases.h"
#include "bench/suite/suite.h"

namespace longca {

/// Lists the cells without running them: FLOPs, an estimate of the memory (inputs, outputs and
/// reference; a kernel's workspace is not known before its plan), and why a kernel will not run.
void print_dry_run(std::ostream& out, const CaseList& list, const RunLimits& limits);

}  // namespace longca
