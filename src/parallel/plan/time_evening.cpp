#include "parallel/plan/time_evening.h"

#include <algorithm>
#include <utility>

#include "parallel/plan/token_transfer.h"

namespace longca {
namespace {

/// How often areas are shifted by what the last shift made of the exchanges.
constexpr int kMostShifts = 3;

/// So much of what a position has to do beyond the mean, in cells, is what it is to get less area.
void shift_area(PartPacking& packing, const std::vector<PositionCost>& costs, double share) {
  std::vector<double> cells;
  double mean = 0;
  for (const PositionCost& cost : costs) {
    cells.push_back(cost.overhead() / seconds_per_cell());
    mean += cells.back() / packing.positions();
  }
  const double most_more = mean - *std::min_element(cells.begin(), cells.end());
  const double limit = kMostDrift * packing.share();
  if (most_more > limit) share *= limit / most_more;
  for (int p = 0; p < packing.positions(); ++p) {
    packing.set_handicap(p, share * (cells[static_cast<std::size_t>(p)] - mean));
  }
  even_out_thoroughly(packing);
}

}  // namespace

PricedDeal::PricedDeal(const PartPacking& packing, const DealCost& cost, double allowed_imbalance)
    : ranges(packing.ranges()),
      costs(cost.of(ranges)),
      imbalance(std::max(packing.imbalance(), allowed_imbalance)),
      price(price_of(costs)) {}

bool PricedDeal::operator<(const PricedDeal& other) const {
  return std::pair(imbalance, price) < std::pair(other.imbalance, other.price);
}

PricedDeal even_out_time(PartPacking packing, const DealCost& cost, DealAim aim,
                         double allowed_imbalance) {
  PricedDeal best(packing, cost, allowed_imbalance);
  double share = 0;
  for (int i = 0; i <= (aim == DealAim::equal_time ? kMostShifts : 0); ++i) {
    PartPacking shifted = packing;
    shift_area(shifted, best.costs, share);
    PricedDeal deal(shifted, cost, allowed_imbalance);
    const bool is_better = deal < best;
    // A shift that is too large for what can be exchanged is tried once more by half.
    share = is_better || share == 0 ? 1 : share / 2;
    if (!is_better) continue;
    packing = std::move(shifted);
    best = std::move(deal);
  }
  return best;
}

}  // namespace longca
