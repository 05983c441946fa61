#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/link_cost.h"
#include "mask/mask.h"
#include "parallel/schemes/build/joint_split.h"

namespace longca {

/// Estimates the seconds of one rank's passes from its cells, bytes and calls, with either its rows
/// divided (JointSplit) or its keys (own, then foreign).
class JointCosts {
 public:
  /// `rows_of_all`: the mask [own rows, all keys], with `own_tokens` rows. All arguments must
  /// outlive this object.
  JointCosts(const ParallelProblem& problem, std::int64_t own_tokens, const CastTraffic& traffic,
             const Mask& rows_of_all);

  double forward_by_rows(const std::vector<Range>& alone, const std::vector<Range>& joint) const;
  /// The first `early` ranges of `alone` are computed before the joint rows, the others after.
  double backward_by_rows(const std::vector<Range>& alone, const std::vector<Range>& joint,
                          std::size_t early) const;
  /// Both passes; in the backward pass half of the work on own keys is computed last. `calls`: rows
  /// of each call on foreign keys; `foreign`: the mask [own rows, foreign keys].
  double by_keys(const std::vector<Range>& calls, const Mask& foreign) const;

 private:
  /// Calls on these rows, one after the other.
  double seconds_of(const std::vector<Range>& rows, const cost::CallCost& call) const;

  const cost::Platform& platform_;
  cost::HeadShape shape_;
  bool backward_;
  std::int64_t own_tokens_;
  std::int64_t sent_;
  const Mask& rows_of_all_;
  cost::CallCost forward_call_;
  cost::CallCost backward_call_;
  cost::ExchangeSeconds exchange_;
};

}  // namespace longca
