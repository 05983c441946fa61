#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "parallel/partition/sharding.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// Tokens of a rank, and rows of its buffers: tokens in ascending order, then padding.
struct Shard {
  std::vector<Range> ranges;  ///< global token numbers
  std::int64_t tokens = 0;
  std::int64_t rows = 0;
};

/// The same rows as numbered in the member's own shard and in its CP rank's shard.
struct MemberRun {
  Range own;
  Range cp_rank;
};

/// The ranks of a scheme: heads × context (J. Fang and S. Zhao, "USP", 2024).
class Grid {
 public:
  Grid(const ParallelProblem& problem, GridShape shape);

  int ranks() const { return head_ways() * cp_ranks(); }
  int head_ways() const { return shape_.head_ways; }
  int cp_ranks() const { return sharding_->cp_ranks(); }
  int rank(int cp_rank, int member) const;
  int cp_rank(int rank) const;
  int member(int rank) const;
  /// Consecutive CP ranks of a node, all of them where there is one node; at least 1.
  int node() const { return node_; }

  /// The tokens of all members of a CP rank.
  Shard cp_rank_shard(int cp_rank) const;
  /// The tokens that a rank owns: its part of the CP rank's tokens, then of its padding.
  Shard own_shard(int rank) const;
  /// A member's rows: its tokens, and its padding where there is any. Empty runs are left out.
  std::vector<MemberRun> runs(const Shard& cp_rank, int member) const;

 private:
  GridShape shape_;
  std::shared_ptr<const Sharding> sharding_;
  int node_;
  std::vector<int> parts_;    ///< the sharding's part of each CP rank; empty: as numbered
  std::int64_t padded_rows_;  ///< rows of every CP rank if the sharding pads, else 0
};

}  // namespace longca
