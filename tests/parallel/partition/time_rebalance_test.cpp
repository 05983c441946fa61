#include "parallel/partition/time_rebalance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "mask/generators.h"
#include "parallel/partition/atoms.h"
#include "parallel/partition/part_assignment.h"

namespace longca {
namespace {

constexpr double kAllowed = 1.02;

/// Over four CP ranks, one long document is cut; two of them fetch keys.
class TimeRebalance : public ::testing::Test {
 protected:
  static Mask make_mask() {
    MaskSpec spec;
    spec.name = "causal_document";
    spec.tokens = 32768;
    spec.seed = 42;
    spec.lengths = "prolong64k";
    return generate_mask(spec).mask;
  }

  TimeRebalance() : mask_(make_mask()), atoms_(mask_, mask_atoms(mask_, 0), 128), cost_(mask_) {}

  PartPacking packing() {
    PartPacking packing(atoms_, 4);
    assign_parts(packing, {0.3, 0.5, true});
    return packing;
  }

  Mask mask_;
  AtomAreas atoms_;
  PartitionCost cost_;
};

TEST_F(TimeRebalance, LetsCpRanksThatWaitComputeLess) {
  const PricedPartition assigned(packing(), cost_, kAllowed);
  const PricedPartition area = rebalance_time(packing(), cost_, PartitionAim::equal_area, kAllowed);
  const double allowed = 1 + kMaxDrift;
  const PricedPartition time = rebalance_time(packing(), cost_, PartitionAim::equal_time, allowed);
  EXPECT_LE(area.price, assigned.price);
  EXPECT_LT(time.price, 0.96 * area.price);
  EXPECT_LE(area.imbalance, kAllowed);
  EXPECT_LE(time.imbalance, allowed);
  const auto waits = [](const CpRankCost& cost) { return cost.received > 0; };
  ASSERT_TRUE(std::any_of(time.costs.begin(), time.costs.end(), waits));
  double most = 0;  // cells of a CP rank that waits, and least of one that does not
  double least = 1e18;
  for (const CpRankCost& cost : time.costs) {
    (waits(cost) ? most : least) =
        waits(cost) ? std::max(most, cost.cells) : std::min(least, cost.cells);
  }
  EXPECT_LT(most, least);
}

TEST_F(TimeRebalance, KeepsTokens) {
  const PricedPartition time =
      rebalance_time(packing(), cost_, PartitionAim::equal_time, 1 + kMaxDrift);
  for (const CpRankCost& cost : time.costs) EXPECT_EQ(cost.tokens, 8192);
}

TEST(PricedPartition, IsOrderedByImbalanceThenPrice) {
  PricedPartition even;
  even.imbalance = 1.02;
  even.price = 2;
  PricedPartition cheap;
  cheap.imbalance = 1.05;
  cheap.price = 1;
  EXPECT_LT(even, cheap);
  cheap.imbalance = 1.02;
  EXPECT_LT(cheap, even);
  EXPECT_LT(cheap, PricedPartition());
}

}  // namespace
}  // namespace longca
