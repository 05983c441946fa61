#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// A rank's rows, divided so that each is computed in one call: rows that see keys of other
/// CP ranks against a joint buffer, in which these lie among the own keys that the same rows see;
/// the others against the own keys alone. Nothing is merged then, and no row is worked on twice.
struct JointSplit {
  /// Exact, disjoint ranges of local rows that make up the shard, at most Cutter::kMaxPieces joint
  /// ones.
  struct Rows {
    /// Rows that need own keys only and are computed before the joint ones, while keys arrive.
    std::vector<Range> before;
    std::vector<Range> joint;
    /// The same, computed behind them in a backward pass, while gradients travel.
    std::vector<Range> after;
  };
  Rows forward, backward;
  /// Tokens of the own keys that lie in the joint buffer, ascending, not touching: those that a
  /// joint row of either pass sees.
  std::vector<Range> own_keys;
};

/// What arrives for a CP rank and leaves it in a cast of one stage.
struct CastTraffic {
  std::vector<Range> foreign;    ///< tokens of the keys that arrive, ascending
  std::int64_t sent_tokens = 0;  ///< keys that leave, each as often as it does
  std::int64_t messages = 0;     ///< runs of keys that arrive or leave, whichever are more
};

/// The splits of a shard by which its passes would end first, estimated from cells and bytes;
/// none where it would end earlier with the keys divided instead: own ones first,
/// foreign ones behind, results merged. A rank chooses for itself: its messages are the same either
/// way.
std::optional<JointSplit> choose_joint_split(const ParallelProblem& problem, const Shard& shard,
                                             const SeenKeys& seen, const CastTraffic& traffic);

}  // namespace longca
