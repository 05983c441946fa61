#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// What a picture of a plan is drawn with: rates that stay the same, no latency, links that are
/// never shared. Not a prediction.
struct PlanRates {
  /// Allowed cells × query heads × head_dim per ms, forward; the backward pass takes 2.5 times as
  /// long.
  double cells_per_ms = 1;
  double bytes_per_ms = 1;  ///< in each direction
};

/// One op in time: an Attend, its gradient or an exchange. Other ops take no time here.
struct TimelineBar {
  int rank = 0;
  Lane lane = Lane::compute;
  int step = 0;
  double begin_ms = 0;  ///< of the pass
  double end_ms = 0;
  std::string label;       ///< "21 cells", "1.5 KiB"
  double area = 0;         ///< allowed cells × query heads
  std::int64_t bytes = 0;  ///< the larger of sent and received
};

/// The bars of a pass of all ranks, by rank and in the order of the list. An exchange lasts until
/// all its peers have begun theirs, and then as long as its larger direction takes.
/// Plans must be of all ranks, in their order, and fit each other (InternalError).
std::vector<TimelineBar> timeline(std::span<const RankPlan> plans, bool backward, int head_dim,
                                  DType dtype, const PlanRates& rates);

}  // namespace longca
