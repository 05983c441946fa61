#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// The rates of a drawing of a plan: constant, without latency or shared links. Not a prediction.
struct PlanRates {
  /// Allowed cells × query heads × head_dim per ms, forward; the backward pass takes 2.5 times as
  /// long.
  double cells_per_ms = 1;
  double bytes_per_ms = 1;  ///< in each direction

  double flops_per_second() const { return 4 * cells_per_ms * 1e3; }
};

/// One op in time: an Attend, its gradient or an exchange. Other ops take no time here.
struct TimelineBar {
  int rank = 0;
  Lane lane = Lane::compute;
  int step = 0;
  double begin_ms = 0;  ///< since the pass began
  double end_ms = 0;
  std::string label;       ///< "21 cells", "1.5 KiB"
  double area = 0;         ///< allowed cells × query heads
  std::int64_t bytes = 0;  ///< the larger of sent and received
};

/// The bars of a pass of all ranks, by rank and in the order of the list. An exchange lasts until
/// all its peers have begun theirs, and then as long as its larger direction takes.
/// `plans`: of all ranks, in order; their messages must match (InternalError).
std::vector<TimelineBar> timeline(std::span<const RankPlan> plans, bool backward, int head_dim,
                                  DType dtype, const PlanRates& rates);

}  // namespace longca
