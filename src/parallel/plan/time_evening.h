#pragma once

#include <limits>
#include <vector>

#include "parallel/plan/deal_aim.h"
#include "parallel/plan/deal_cost.h"
#include "parallel/plan/part_packing.h"

namespace longca {

/// A deal of all tokens and what it costs. Deals are ordered by imbalance, then by price.
struct PricedDeal {
  PricedDeal() = default;
  /// A smaller imbalance than the allowed one makes no deal better.
  PricedDeal(const PartPacking& packing, const DealCost& cost, double allowed_imbalance);

  std::vector<std::vector<Range>> ranges;
  std::vector<PositionCost> costs;
  double imbalance = std::numeric_limits<double>::infinity();  ///< of areas; at least the allowed
  double price = std::numeric_limits<double>::infinity();

  bool operator<(const PricedDeal& other) const;
};

/// Over few positions areas may differ so much from the mean, of which they are shares, for the
/// sake of time.
inline constexpr double kMostDrift = 0.12;

/// The best deal that comes of a packing without room left by exchanges between its positions: ones
/// that make areas equal, and for equal time others that give less area to positions that have more
/// to do beside it.
PricedDeal even_out_time(PartPacking packing, const DealCost& cost, DealAim aim,
                         double allowed_imbalance);

}  // namespace longca
