#pragma once

#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// Stage s of a cast brings the keys of the owners that are stages[s] = [begin, end) places before
/// a CP rank, and sends to those as far behind it: so both ends know it.
using CastStages = std::vector<Range>;

/// 1, 2, 4, … owners: the first stage hides behind the own keys, each other one behind about as
/// much computing as came before it, with few calls.
CastStages doubling_stages(int cp_ranks);

/// Equal stages, their number (at most 8) such that the slowest of a sample of CP ranks would end
/// first, forward: by its cells, its bytes, and for each stage an exchange, a call and the merging
/// of its rows.
CastStages stages_by_cost(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen);

}  // namespace longca
