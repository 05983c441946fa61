#pragma once

#include <cstddef>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// What a backward pass may begin of its later ops while it waits for keys: the work on dout, o and
/// lse of each AttendBackward.
struct EarlyRows {
  std::size_t before = 0;  ///< the op that waits
  std::vector<int> ops;    ///< from there on; empty: there is nothing to begin
};

/// `before` is the first op of the compute lane that waits for an exchange. Of the ops from there
/// on those count whose rows are there by then: nothing writes them that is listed before such an
/// op, but what the compute lane has done before it waits.
EarlyRows find_early_rows(const std::vector<Op>& ops);

}  // namespace longca
