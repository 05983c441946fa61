#pragma once

#include "bench/cell/problem.h"
#include "bench/measure/device_clock.h"
#include "bench/record/record.h"
#include "bench/suite/case.h"

namespace longca {

/// Notes how many rows of a block-sparse mask have no key, so that their output is 0.
void note_empty_rows(const CellProblem& problem, Record& record);

/// Records time and quality of the choice of blocks, measured once per problem: selection_ms and
/// end_to_end_ms for a timed case that selects by scores; kept_mass and error_full for a case that
/// does so or has other inputs than normal ones. Nothing for other cases; a note if memory runs
/// out. `clock` is null for cells without times.
void note_selection(const Case& c, CellProblem& problem, DeviceClock* clock, double time_limit_s,
                    Record& record);

}  // namespace longca
