#pragma once

#include <cstddef>
#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {

/// Which keys travel in which stage of a cast.
struct CastStages {
  /// Straight from their owners: in a stage CP rank r receives keys from r − d and sends its own to
  /// r + d, for each distance d in [begin, end), modulo the number of CP ranks.
  std::vector<Range> distances;

  /// CP ranks of a node between which keys are relayed (relays.h), in `relayed` stages; 1: none
  /// are.
  int node = 1;
  int relayed = 0;
  int nodes = 1;
  /// The stage in which keys of CP rank `owner` travel to those of a node: in every stage a node
  /// gets the keys of equally many owners, and each owner sends to some of the nodes, so that all
  /// NICs are used.
  int stage_of(int owner, int to_node) const {
    return (owner % node + (to_node - owner / node + nodes)) % relayed;
  }

  std::size_t count() const {
    return node > 1 ? static_cast<std::size_t>(relayed) : distances.size();
  }
};

/// CastStages::node for a group-cast: the CP ranks of a node; 1 where there is one node, and for
/// document_zigzag, whose shards have some tokens of every document.
int relaying_node(const ParallelProblem& problem, const Grid& grid);

/// Stages of keys relayed between nodes of so many CP ranks: two, of which the second travels while
/// the first is computed, or one where a sample of CP ranks sees fewer keys of others than it owns.
CastStages relayed_stages(const Grid& grid, const SeenKeys& seen, int node);

/// Stages of 1, 2, 4, … owners: few kernel calls, and the computing before a stage is about as much
/// as the stage itself brings.
CastStages doubling_stages(int cp_ranks);

/// Equal stages, at most 8: their number minimises the forward time of the slowest of a sample of
/// CP ranks, estimated from cells, bytes, and one exchange, call and merge per stage.
CastStages stages_by_cost(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen);

}  // namespace longca
