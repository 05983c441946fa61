#pragma once

#include <cstdint>
#include <string>

#include "bench/ranks/rank_team.h"
#include "bench/run/protocol.h"
#include "bench/run/state_watch.h"

namespace longca {

/// Why the ranks must not work together, as one sentence, the same on all of them: a rank runs
/// another commit of the program than rank 0, or was given another suite. Empty if they may.
/// Collective.
std::string disagreement(RankControl& control, const std::string& commit,
                         const std::string& suite_hash);

/// How a rank ends.
enum class RankEnd : std::uint8_t {
  parent_gone,  ///< the parent has closed its socket
  spoilt,       ///< the process must end, but not by `exit`: destructors could hang
};

/// The main loop of a rank, once all agree to work together: rank 0 broadcasts the parent's
/// requests, the ranks of the case run it, rank 0 answers (bench/ranks/protocol.h). Throws
/// RankFailure after sending it to the parent. `watch` checks what kernels leave behind.
RankEnd run_rank(LineChannel& channel, RankTeams& teams, StateWatch& watch);

}  // namespace longca
