#include "parallel/schemes/build/cast_stages.h"

#include <algorithm>
#include <limits>

#include "core/rounding.h"
#include "cost/kernel_cost.h"
#include "mask/range.h"

namespace longca {
namespace {

/// Passes over a row's result per stage: the kernel writes it and the merge reads it.
constexpr double kTouchesOfARow = 2;
constexpr int kMaxStages = 8;
constexpr int kSampledCpRanks = 8;

std::vector<int> sample_of(int cp_ranks) {
  const int count = std::min(cp_ranks, kSampledCpRanks);
  std::vector<int> sample;
  for (int i = 0; i < count; ++i) {
    sample.push_back(static_cast<int>(std::int64_t{cp_ranks} * i / count));
  }
  return sample;
}

/// Seconds of one CP rank.
struct Cost {
  double own = 0;       ///< computing on own keys
  double others = 0;    ///< computing on keys of other CP ranks
  double transfer = 0;  ///< of these keys
  double merging = 0;   ///< of one stage
};

Cost cost_of(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen, int cp_rank) {
  const Problem& p = problem.problem;
  const Shard shard = grid.cp_rank_shard(cp_rank);
  const std::vector<Range> all = {{0, p.tokens_k}};
  const Mask own_rows = problem.mask.sub_mask(shard.ranges, all);
  const std::vector<Range> rows = {{0, shard.tokens}};
  const double cells = own_rows.mean_area();
  const double own_cells = own_rows.sub_mask(rows, shard.ranges).mean_area();
  const cost::Platform& platform = *problem.platform;
  const cost::HeadShape shape = problem.shape();
  const double seconds_per_cell = cost::any_call(platform, shape).seconds_per_cell;
  const std::vector<Range> keys = seen.by(shard.ranges);
  const std::int64_t foreign = total_size(keys) - total_size(common_ranges(keys, shard.ranges));
  return {own_cells * seconds_per_cell, (cells - own_cells) * seconds_per_cell,
          static_cast<double>(foreign) * shape.key_bytes() / platform.links.bytes_per_second,
          cost::memory_seconds(
              platform, kTouchesOfARow * static_cast<double>(shard.tokens) * shape.row_bytes())};
}

/// Seconds until a CP rank ends if its keys arrive in `stages` stages.
double end_of(const Cost& cost, int stages, const cost::Platform& platform) {
  const double per_stage = platform.links.seconds_per_exchange;
  const double per_call = platform.kernel.any.seconds_per_call;
  double end = cost.own;
  for (int stage = 1; stage <= stages; ++stage) {
    const double arrived = stage * (cost.transfer / stages + per_stage);
    end = std::max(end, arrived) + cost.others / stages + per_call + cost.merging;
  }
  return end;
}

}  // namespace

CastStages doubling_stages(int cp_ranks) {
  CastStages stages;
  for (std::int64_t begin = 1, size = 1; begin < cp_ranks; begin += size, size *= 2) {
    stages.distances.push_back({begin, std::min<std::int64_t>(begin + size, cp_ranks)});
    size = stages.distances.back().size();
  }
  return stages;
}

int relaying_node(const ParallelProblem& problem, const Grid& grid) {
  const int node = grid.node();
  return node == grid.cp_ranks() || problem.shard == ShardKind::document_zigzag ? 1 : node;
}

CastStages relayed_stages(const Grid& grid, const SeenKeys& seen, int node) {
  const int cp_ranks = grid.cp_ranks();
  std::int64_t own = 0, foreign = 0;
  for (const int cp_rank : sample_of(cp_ranks)) {
    const Shard shard = grid.cp_rank_shard(cp_rank);
    const std::vector<Range> keys = seen.by(shard.ranges);
    own += shard.tokens;
    foreign += total_size(keys) - total_size(common_ranges(keys, shard.ranges));
  }
  return {{}, node, foreign < own ? 1 : 2, ceil_div(cp_ranks, node)};
}

CastStages stages_by_cost(const ParallelProblem& problem, const Grid& grid, const SeenKeys& seen) {
  const int cp_ranks = grid.cp_ranks();
  if (cp_ranks == 1) return {};
  std::vector<Cost> costs;
  for (const int cp_rank : sample_of(cp_ranks)) {
    costs.push_back(cost_of(problem, grid, seen, cp_rank));
  }
  int best = 1;
  double best_end = std::numeric_limits<double>::infinity();
  for (int stages = 1; stages <= std::min(kMaxStages, cp_ranks - 1); ++stages) {
    double end = 0;
    for (const Cost& cost : costs) end = std::max(end, end_of(cost, stages, *problem.platform));
    if (end >= best_end) continue;
    best = stages;
    best_end = end;
  }
  CastStages stages;
  for (std::int64_t i = 0; i < best; ++i) {
    stages.distances.push_back(
        {1 + (cp_ranks - 1) * i / best, 1 + (cp_ranks - 1) * (i + 1) / best});
  }
  return stages;
}

}  // namespace longca
