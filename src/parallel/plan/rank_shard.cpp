#include "parallel/plan/rank_shard.h"

#include "core/error.h"

namespace longca {

std::int64_t RankShard::count() const {
  std::int64_t tokens_of_all = 0;
  for (const Range& range : tokens) tokens_of_all += range.size();
  return tokens_of_all;
}

RankShard shard_of(const RankPlan& plan) {
  RankShard shard;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.external && buffer.role == TensorRole::q) shard.rows = buffer.tokens;
  }
  for (const Placement& placement : plan.results) {
    if (placement.role == TensorRole::o) {
      LONGCA_CHECK(shard.tokens.empty(), "O of rank {} ends in two places", plan.rank);
      shard.tokens = placement.tokens;
    }
  }
  LONGCA_CHECK(shard.count() <= shard.rows, "rank {} owns {} tokens in {} rows", plan.rank,
               shard.count(), shard.rows);
  return shard;
}

}  // namespace longca
