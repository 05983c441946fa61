#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "bench/suite/case.h"
#include "core/status.h"
#include "parallel/executor/lanes.h"
#include "parallel/plan/plan.h"

namespace longca {

/// One repetition of a pass over ranks in Chrome's trace format, for chrome://tracing or Perfetto:
/// a process per rank, a thread per lane, an event per op with its step, cells and bytes. Time 0 is
/// when all ranks' devices have met.

/// Unsupported for a step: one pass is traced.
Status can_trace(Pass pass);
/// The events of one rank, as text that write_trace takes.
std::string trace_of_rank(const RankPlan& plan, const std::vector<Op>& ops,
                          std::span<const OpTime> times, int head_dim, DType dtype);
/// Writes the events of all ranks, in their order. Throws InputError naming the file and the
/// system's reason.
void write_trace(const std::filesystem::path& file, const Case& c,
                 std::span<const std::string> ranks);

}  // namespace longca
