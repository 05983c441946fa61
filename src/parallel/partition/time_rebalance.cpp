#include "parallel/partition/time_rebalance.h"

#include <algorithm>
#include <utility>

#include "parallel/partition/token_transfer.h"

namespace longca {
namespace {

/// Rebalances so that each CP rank gets less area by `share` of its overhead beyond the mean,
/// counted in cells.
void shift_area(PartPacking& packing, const std::vector<CpRankCost>& costs,
                const CpRankTimes& times, double share) {
  std::vector<double> cells;
  double mean = 0;
  for (const CpRankCost& cost : costs) {
    cells.push_back(times.overhead(cost) / times.call().seconds_per_cell);
    mean += cells.back() / packing.cp_ranks();
  }
  const double max_more = mean - *std::min_element(cells.begin(), cells.end());
  const double limit = kMaxDrift * packing.share();
  if (max_more > limit) share *= limit / max_more;
  for (int p = 0; p < packing.cp_ranks(); ++p) {
    packing.set_bias(p, share * (cells[static_cast<std::size_t>(p)] - mean));
  }
  rebalance_thoroughly(packing);
}

}  // namespace

PricedPartition::PricedPartition(const PartPacking& packing, const PartitionCost& cost,
                                 double allowed_imbalance)
    : ranges(packing.ranges()),
      costs(cost.of(ranges)),
      imbalance(std::max(packing.imbalance(), allowed_imbalance)),
      price(cost.times().price_of(costs)) {}

bool PricedPartition::operator<(const PricedPartition& other) const {
  return std::pair(imbalance, price) < std::pair(other.imbalance, other.price);
}

PricedPartition rebalance_time(PartPacking packing, const PartitionCost& cost, PartitionAim aim,
                               double allowed_imbalance) {
  PricedPartition best(packing, cost, allowed_imbalance);
  const auto try_shift = [&](double share) {
    PartPacking shifted = packing;
    shift_area(shifted, best.costs, cost.times(), share);
    PricedPartition partition(shifted, cost, allowed_imbalance);
    if (!(partition < best)) return;
    packing = std::move(shifted);
    best = std::move(partition);
  };
  try_shift(0);
  if (aim == PartitionAim::equal_time) try_shift(1);
  return best;
}

}  // namespace longca
