#pragma once

#include "bench/case.h"
#include "bench/cell_problem.h"
#include "bench/device_clock.h"
#include "bench/record.h"

namespace longca {

/// Notes of a block-sparse mask, before its kernel runs: rows whose output is 0.
void note_empty_rows(const CellProblem& problem, Record& record);

/// What the choice of blocks takes and costs, measured once per problem: selection_ms and
/// end_to_end_ms of a case that selects by scores and whose kernel was timed, kept_mass and
/// error_full of one that does so or has clustered inputs. Nothing for other cases. Where there is
/// no memory for it, the record's notes say so instead. `clock` is null for cells without times.
void note_selection(const Case& c, CellProblem& problem, DeviceClock* clock, double time_limit_s,
                    Record& record);

}  // namespace longca
