#pragma once

#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// In stage s, CP rank r receives keys from CP ranks r − d and sends its own to r + d, for each
/// distance d in stages[s] = [begin, end), modulo the number of CP ranks.
using CastStages = std::vector<Range>;

/// Stages of 1, 2, 4, … owners: each is hidden by about as much computing as it brings itself, with
/// few kernel calls.
CastStages doubling_stages(int cp_ranks);

/// Equal stages, at most 8: the number for which the slowest of a sample of CP ranks finishes the
/// forward pass first. Costs: cells, bytes, and per stage one exchange, one call and one merge.
CastStages stages_by_cost(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen);

}  // namespace longca
