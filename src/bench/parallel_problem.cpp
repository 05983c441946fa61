#include "bench/parallel_problem.h"

namespace longca {

ParallelProblem parallel_problem(const Case& c, const GeneratedMask& generated,
                                 int ranks_per_node) {
  return {.problem = c.problem(),
          .mask = generated.mask,
          .lengths = generated.lengths,
          .ranks = c.ranks.value(),
          .ranks_per_node = ranks_per_node,
          .shard = parse_shard_kind(c.shard.value()),
          .factor = c.factor.value_or(0)};
}

}  // namespace longca
