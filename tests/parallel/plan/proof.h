#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parallel/schemes/scheme.h"

namespace longca::testing {

/// What travelled in one pass, over all ranks, in bytes.
struct Traffic {
  std::int64_t sent = 0;
  std::int64_t padding = 0;   ///< of them, rows of padding
  std::int64_t unneeded = 0;  ///< of them, rows that no cell and no result came from
};

struct Proof {
  std::vector<std::string> faults;  ///< sentences; of one op only the first
  Traffic forward, backward;

  bool ok() const { return faults.empty(); }
  std::string text() const;  ///< the faults, one per line
};

struct ProofOptions {
  /// Whether group casts and reductions may carry only rows that a cell needs. What other patterns
  /// carry is the same for all masks; they must only not bring a rank what it has had already.
  bool exact_casts = true;
};

/// Runs the plans of all ranks on symbols instead of numbers, and says what is wrong:
/// – indices, shapes, element types, lanes that break the promises of plan.h;
/// – messages without their other half, of another shape or type, or not needed;
/// – ranks that wait for each other for ever, or ops for what is listed after them;
/// – two ops that touch the same elements, one writing, with nothing between them that says which
///   is first;
/// – rows that hold other tokens or heads than an op's mask is about; cells computed that the mask
///   does not allow, or twice, or never; gradients taken with an unfinished softmax;
/// – results that are not where a Placement says, lie nowhere or twice, or lack contributions.
/// For small problems: memory and time grow as heads × tokens².
///
/// Which token a row of the caller's tensors is, is read off the placement of o in them; rows
/// behind are padding.
Proof prove(const ParallelProblem& problem, std::span<const RankPlan> plans,
            const ProofOptions& options = {});
/// Of a scheme's plans.
Proof prove(const ParallelProblem& problem, const Scheme& scheme, const ProofOptions& options = {});

}  // namespace longca::testing
