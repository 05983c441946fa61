#include "parallel/partition/time_rebalance.h"

#include <algorithm>
#include <utility>

#include "parallel/partition/token_transfer.h"

namespace longca {
namespace {

/// How often areas are shifted by what the last shift made of the exchanges.
constexpr int kMaxShifts = 3;

/// So much of what a CP rank has to do beyond the mean, in cells, is what it is to get less area.
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
  double share = 0;
  for (int i = 0; i <= (aim == PartitionAim::equal_time ? kMaxShifts : 0); ++i) {
    PartPacking shifted = packing;
    shift_area(shifted, best.costs, cost.times(), share);
    PricedPartition partition(shifted, cost, allowed_imbalance);
    const bool is_better = partition < best;
    // A shift that is too large for what can be exchanged is tried once more by half.
    share = is_better || share == 0 ? 1 : share / 2;
    if (!is_better) continue;
    packing = std::move(shifted);
    best = std::move(partition);
  }
  return best;
}

}  // namespace longca
