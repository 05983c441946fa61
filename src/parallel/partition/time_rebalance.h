#pragma once

#include <limits>
#include <vector>

#include "parallel/partition/document_partition.h"
#include "parallel/partition/part_packing.h"
#include "parallel/partition/partition_cost.h"

namespace longca {

/// A partition of all tokens and what it costs. Partitions are ordered by imbalance, then by price.
struct PricedPartition {
  PricedPartition() = default;
  /// Imbalances up to the allowed one count as equal.
  PricedPartition(const PartPacking& packing, const PartitionCost& cost, double allowed_imbalance);

  std::vector<std::vector<Range>> ranges;
  std::vector<CpRankCost> costs;
  double imbalance = std::numeric_limits<double>::infinity();  ///< of areas; at least the allowed
  double price = std::numeric_limits<double>::infinity();

  bool operator<(const PricedPartition& other) const;
};

/// Over few CP ranks, areas may exceed the mean by up to this fraction to make times equal; not by
/// more, since areas are exact and times estimated.
inline constexpr double kMaxDrift = 0.12;

/// Rebalances a full packing by exchanges between its CP ranks: for equal areas, then, if the aim
/// is equal time, with less area for CP ranks with more overhead (CpRankTimes). Returns the best
/// partition found.
PricedPartition rebalance_time(PartPacking packing, const PartitionCost& cost, PartitionAim aim,
                               double allowed_imbalance);

}  // namespace longca
