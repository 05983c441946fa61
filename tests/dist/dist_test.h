#pragma once

#include <memory>

#include "bench/cell/cell_runner.h"
#include "bench/ranks/rank_team.h"
#include "parallel/transport/mpi/mpi_world.h"

namespace longca::testing {

/// The ranks that mpirun started. Every test runs on all of them; what one rank finds is printed
/// with its number, and fails the run for all.
MpiWorld& world();

/// What a cell is run with: nothing timed unless there is a time limit.
CellOptions cell_options(double time_limit_s = 0);

/// All of them as a team that works on CPUs.
RankTeam make_team(MpiWorld& ranks);

}  // namespace longca::testing
