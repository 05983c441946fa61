#pragma once

#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// In stage s, CP rank r receives keys from CP ranks r − d and sends its own to r + d, for each
/// distance d in stages[s] = [begin, end), modulo the number of CP ranks.
using CastStages = std::vector<Range>;

/// Stages of 1, 2, 4, … owners: few kernel calls, and the computing before a stage is about as much
/// as the stage itself brings.
CastStages doubling_stages(int cp_ranks);

/// Equal stages, at most 8: their number minimises the forward time of the slowest of a sample of
/// CP ranks, estimated from cells, bytes, and one exchange, call and merge per stage.
CastStages stages_by_cost(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen);

}  // namespace longca
