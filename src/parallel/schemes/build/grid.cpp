#include "parallel/schemes/build/grid.h"

#include <algorithm>

#include "mask/range.h"
#include "parallel/schemes/build/node_order.h"

namespace longca {
namespace {

/// The member's part of rows [begin, end), as split_ranges partitions.
Range part(std::int64_t begin, std::int64_t end, int parts, int member) {
  const Range whole[] = {{begin, end}};
  const std::vector<Range> mine = split_ranges(whole, parts, member);
  return mine.empty() ? Range{begin, begin} : mine.front();
}

int node_of(const ParallelProblem& problem, GridShape shape) {
  const int ranks = problem.ranks_per_node / (shape.head_first ? shape.head_ways : 1);
  return std::clamp(ranks, 1, std::max(1, problem.ranks / shape.head_ways));
}

std::shared_ptr<const Sharding> sharding_of(const ParallelProblem& problem, int cp_ranks) {
  const auto make = [&] {
    return Sharding(problem.shard, problem.mask, problem.lengths, cp_ranks, 0,
                    problem.problem.device == DeviceKind::cuda ? PartitionAim::equal_time
                                                               : PartitionAim::equal_area,
                    *problem.platform);
  };
  if (problem.shardings != nullptr) return problem.shardings->get(cp_ranks, make);
  return std::make_shared<const Sharding>(make());
}

}  // namespace

Grid::Grid(const ParallelProblem& problem, GridShape shape)
    : shape_(shape),
      sharding_(sharding_of(problem, problem.ranks / shape.head_ways)),
      node_(node_of(problem, shape)),
      padded_rows_(problem.shard == ShardKind::document_zigzag ? sharding_->rows(0) : 0) {
  if (!shape.ordered_by_node || problem.shard != ShardKind::document_balanced) return;
  if (node_ == 1 || node_ == cp_ranks()) return;
  const auto make = [&] {
    std::vector<std::vector<Range>> parts;
    for (int part = 0; part < cp_ranks(); ++part) parts.push_back(sharding_->ranges(part));
    return node_order(problem.mask, parts, node_);
  };
  parts_ =
      problem.shardings != nullptr ? problem.shardings->order(cp_ranks(), node_, make) : make();
}

int Grid::rank(int cp_rank, int member) const {
  return shape_.head_first ? cp_rank * head_ways() + member : member * cp_ranks() + cp_rank;
}

int Grid::cp_rank(int rank) const {
  return shape_.head_first ? rank / head_ways() : rank % cp_ranks();
}

int Grid::member(int rank) const {
  return shape_.head_first ? rank % head_ways() : rank / cp_ranks();
}

Shard Grid::cp_rank_shard(int cp_rank) const {
  const int part = parts_.empty() ? cp_rank : parts_.at(static_cast<std::size_t>(cp_rank));
  Shard shard{sharding_->ranges(part), 0, 0};
  shard.tokens = total_size(shard.ranges);
  shard.rows = std::max(shard.tokens, padded_rows_);
  return shard;
}

Shard Grid::own_shard(int rank) const {
  const Shard whole = cp_rank_shard(cp_rank(rank));
  Shard own{split_ranges(whole.ranges, head_ways(), member(rank)), 0, 0};
  own.tokens = total_size(own.ranges);
  own.rows = own.tokens + part(whole.tokens, whole.rows, head_ways(), member(rank)).size();
  return own;
}

std::vector<MemberRun> Grid::runs(const Shard& cp_rank, int member) const {
  const Range tokens = part(0, cp_rank.tokens, head_ways(), member);
  const Range padding = part(cp_rank.tokens, cp_rank.rows, head_ways(), member);
  std::vector<MemberRun> runs;
  if (!tokens.empty()) runs.push_back({{0, tokens.size()}, tokens});
  if (!padding.empty()) {
    runs.push_back({{tokens.size(), tokens.size() + padding.size()}, padding});
  }
  return runs;
}

}  // namespace longca
