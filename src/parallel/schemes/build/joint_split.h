#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// A rank's rows, divided so that each is computed in one call and nothing is merged: rows that see
/// keys of other CP ranks ("joint") attend to one buffer that holds these keys and the own keys
/// that the same rows see; all other rows attend to own keys alone.
struct JointSplit {
  /// Disjoint ranges of local rows that together are the shard; at most Cutter::kMaxPieces are
  /// joint.
  struct Rows {
    /// See own keys only; computed while keys arrive.
    std::vector<Range> before;
    std::vector<Range> joint;
    /// See own keys only; computed in the backward pass while gradients return to their owners.
    std::vector<Range> after;
  };
  Rows forward, backward;
  /// Tokens of the own keys in the joint buffer: those that a joint row of either pass sees.
  /// Ascending, not touching.
  std::vector<Range> own_keys;
};

/// What a CP rank receives and sends in a cast of one stage.
struct CastTraffic {
  std::vector<Range> foreign;    ///< tokens of the keys that arrive, ascending
  std::int64_t sent_tokens = 0;  ///< keys sent, counted once per receiver
  std::int64_t messages = 0;     ///< runs of keys received or sent, whichever are more
};

/// The split with the lowest estimated time (JointCosts), or none where dividing the keys (own ones
/// first, then foreign ones, results merged) is faster. Each rank may choose alone: its messages do
/// not depend on the choice.
std::optional<JointSplit> choose_joint_split(const ParallelProblem& problem, const Shard& shard,
                                             const SeenKeys& seen, const CastTraffic& traffic);

}  // namespace longca
