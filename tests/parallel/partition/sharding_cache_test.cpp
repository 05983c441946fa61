#include "parallel/partition/sharding_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/thread_pool.h"
#include "mask/generators.h"
#include "parallel/schemes/build/grid.h"

namespace longca {
namespace {

Mask mask_of(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  return generate_mask(spec).mask;
}
Mask causal(std::int64_t tokens) {
  return mask_of("causal", tokens);
}

TEST(ShardingCache, MakesEachShardingOnceForAllThreads) {
  ShardingCache cache;
  const Mask mask = causal(512);
  std::atomic<int> made = 0;
  ThreadPool::global().parallel_for(24, [&](std::int64_t i, int /*worker*/) {
    const int cp_ranks = i % 2 == 0 ? 4 : 8;
    const auto sharding = cache.get(cp_ranks, [&] {
      ++made;
      return Sharding(ShardKind::balanced, mask, {}, cp_ranks);
    });
    EXPECT_EQ(sharding->cp_ranks(), cp_ranks);
  });
  EXPECT_EQ(made, 2);
}

TEST(ShardingCache, GridsOfAProblemHaveThePartitionThatEachWouldMake) {
  for (const ShardKind kind : {ShardKind::document_zigzag, ShardKind::document_balanced}) {
    ParallelProblem problem{.problem = {}, .mask = causal(2048), .lengths = {}};
    problem.problem.tokens_q = problem.problem.tokens_k = 2048;
    problem.ranks = 8;
    problem.shard = kind;
    ShardingCache cache;
    ParallelProblem sharing = problem;
    sharing.shardings = &cache;
    for (const int head_ways : {1, 2}) {
      const Grid alone(problem, {head_ways, true});
      const Grid shared(sharing, {head_ways, true});
      for (int rank = 0; rank < problem.ranks; ++rank) {
        EXPECT_EQ(shared.own_shard(rank).ranges, alone.own_shard(rank).ranges) << rank;
        EXPECT_EQ(shared.own_shard(rank).rows, alone.own_shard(rank).rows) << rank;
      }
      const auto kept = cache.get(problem.ranks / head_ways, [&]() -> Sharding {
        ADD_FAILURE() << "the grid has not asked the cache";
        return Sharding(kind, problem.mask, {}, problem.ranks / head_ways);
      });
      EXPECT_EQ(kept->cp_ranks(), problem.ranks / head_ways);
    }
  }
}

TEST(ShardingCache, GridsOfAProblemHaveTheOrderThatEachWouldMake) {
  ParallelProblem problem{.problem = {}, .mask = mask_of("document", 131072), .lengths = {}};
  problem.problem.tokens_q = problem.problem.tokens_k = 131072;
  problem.ranks = 16;
  problem.ranks_per_node = 4;
  problem.shard = ShardKind::document_balanced;
  const GridShape shape{.ordered_by_node = true};
  const Grid alone(problem, shape);
  const Grid as_numbered(problem, {});
  ShardingCache cache;
  problem.shardings = &cache;
  bool moved = false;
  for (int i = 0; i < 2; ++i) {
    const Grid shared(problem, shape);
    for (int rank = 0; rank < problem.ranks; ++rank) {
      EXPECT_EQ(shared.own_shard(rank).ranges, alone.own_shard(rank).ranges) << rank;
      moved |= shared.own_shard(rank).ranges != as_numbered.own_shard(rank).ranges;
    }
  }
  EXPECT_TRUE(moved) << "another mask is needed, whose ranks change places";
  cache.order(problem.ranks, problem.ranks_per_node, [&] {
    ADD_FAILURE() << "the grid has not asked the cache";
    return std::vector<int>(16);
  });
}

}  // namespace
}  // namespace longca
