#pragma once

#include <cstdint>
#include <string>

#include "bench/protocol.h"
#include "bench/ranks/rank_team.h"

namespace longca {

/// The sentence of a team that must not work together, the same on all ranks: one runs another
/// commit of the program than rank 0, or was given another suite. Empty if all is well. Collective.
std::string disagreement(RankControl& control, const std::string& commit,
                         const std::string& suite_hash);

/// How a rank's life ends.
enum class RankEnd : std::uint8_t {
  parent_gone,  ///< nothing more is asked
  device_lost,  ///< the process must end, but not by `exit`: destructors could wait for ever
};

/// The life of a rank once the team agrees: rank 0 passes on what the parent asks, the ranks of the
/// case run it, rank 0 answers (bench/ranks/protocol.h). Throws RankFailure after having told the
/// parent.
RankEnd run_rank(LineChannel& channel, RankTeams& teams);

}  // namespace longca
