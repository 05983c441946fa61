#pragma once

#include <cstdint>
#include <vector>

#include "parallel/plan/sharding.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// How ranks stand to each other: `head_ways` members at each position along the context share the
/// position's tokens and have different heads.
struct GridShape {
  int head_ways = 1;
  /// Whether consecutive ranks are the members of one position (so that the exchange of heads stays
  /// in a node), or the positions of one member (so that the exchange of context does).
  bool head_first = true;
};

/// Tokens, and rows of a buffer: the tokens in ascending order, padding behind them.
struct Shard {
  std::vector<Range> ranges;  ///< global token numbers
  std::int64_t tokens = 0;
  std::int64_t rows = 0;
};

/// Some rows of a member's shard, and where they lie among those of its position.
struct MemberRun {
  Range own;
  Range position;
};

/// The ranks of a scheme: heads × context (J. Fang and S. Zhao, "USP", 2024).
class Grid {
 public:
  Grid(const ParallelProblem& problem, GridShape shape);

  int ranks() const { return head_ways() * positions(); }
  int head_ways() const { return shape_.head_ways; }
  int positions() const { return sharding_.positions(); }
  int rank(int position, int member) const;
  int position(int rank) const;
  int member(int rank) const;

  /// What a position's members hold together.
  Shard position_shard(int position) const;
  /// What a rank owns: its part of the position's tokens, then of its padding.
  Shard own_shard(int rank) const;
  /// A member's rows: its tokens, and its padding where there is any. Empty runs are left out.
  std::vector<MemberRun> runs(const Shard& position, int member) const;

 private:
  GridShape shape_;
  Sharding sharding_;
  std::int64_t padded_rows_;  ///< of every position, where the kind pads; else 0
};

}  // namespace longca
