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
  /// A smaller imbalance than the allowed one makes no partition better.
  PricedPartition(const PartPacking& packing, const PartitionCost& cost, double allowed_imbalance);

  std::vector<std::vector<Range>> ranges;
  std::vector<CpRankCost> costs;
  double imbalance = std::numeric_limits<double>::infinity();  ///< of areas; at least the allowed
  double price = std::numeric_limits<double>::infinity();

  bool operator<(const PricedPartition& other) const;
};

/// Over few CP ranks areas may differ so much from the mean, of which they are shares, for the
/// sake of time.
inline constexpr double kMaxDrift = 0.12;

/// The best partition that comes of a packing without room left by exchanges between its CP ranks:
/// ones that make areas equal, and for equal time others that give less area to CP ranks that have
/// more to do beside it.
PricedPartition rebalance_time(PartPacking packing, const PartitionCost& cost, PartitionAim aim,
                               double allowed_imbalance);

}  // namespace longca
