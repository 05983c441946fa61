#pragma once

#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca::testing {

/// What an op reads and writes. What it adds to or merges into counts as written.
struct Accesses {
  std::vector<Region> reads;
  std::vector<Region> writes;
};
Accesses accesses_of(const Op& op);

bool overlap(const Region& a, const Region& b);

/// "attend", "exchange (send_receive)", …
std::string kind_of(const Op& op);
/// "rank 1, forward op 3 (attend, step 2)".
std::string name_of(const RankPlan& plan, bool backward, int op);
/// "rows [0, 4) × heads [0, 2) of 'k of the pass'".
std::string name_of(const RankPlan& plan, const Region& region);

inline const std::vector<Op>& ops_of(const RankPlan& plan, bool backward) {
  return backward ? plan.backward : plan.forward;
}
/// Pairs of element types that may be copied onto each other are equal here.
inline bool is_float32(const RankPlan& plan, const Region& region) {
  const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(region.buffer)];
  return buffer.float32 || buffer.role == TensorRole::lse;
}

}  // namespace longca::testing
