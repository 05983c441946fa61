#pragma once

#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// The happens-before order of a list of ops. Both lanes run in order, so an op waits for a prefix
/// of its own lane and a prefix of the other.
class LaneOrder {
 public:
  explicit LaneOrder(const std::vector<Op>& ops);

  /// Whether neither op waits for the other, so that they may overlap.
  bool unordered(int a, int b) const;

 private:
  /// Whether `earlier` has always completed when `op` begins.
  bool waits(int op, int earlier) const;

  std::vector<Lane> lanes_;
  /// By op: the last op of the other lane that must have completed before it, −1 if none.
  std::vector<int> waited_;
};

}  // namespace longca
