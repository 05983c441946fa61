#pragma once

#include <cstdint>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// The tokens that a rank owns.
struct RankShard {
  std::vector<Range> tokens;  ///< global numbers, ascending
  std::int64_t rows = 0;      ///< of its tensors: the tokens, then padding

  std::int64_t count() const;
};
/// The shard in a plan: rows of the external buffers, tokens of O.
RankShard shard_of(const RankPlan& plan);

}  // namespace longca
