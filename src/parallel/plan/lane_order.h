#pragma once

#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// Which ops of a list have certainly ended when another begins. Two lanes in order make this
/// simple: an op waits for a first part of its own lane and a first part of the other.
class LaneOrder {
 public:
  explicit LaneOrder(const std::vector<Op>& ops);

  /// Whether neither of two ops waits for the other: they may go on side by side.
  bool unordered(int a, int b) const;

 private:
  bool waits(int op, int earlier) const;

  std::vector<Lane> lanes_;
  /// The last op of the other lane that must have ended before each op, −1 if none.
  std::vector<int> waited_;
};

}  // namespace longca
