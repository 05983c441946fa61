#include "parallel/partition/time_rebalance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "mask/generators.h"
#include "parallel/partition/atoms.h"
#include "parallel/partition/part_assignment.h"
#include "parallel/partition/token_transfer.h"

namespace longca {
namespace {

constexpr double kAllowed = 1.02;

Mask packed(const std::vector<std::int64_t>& lengths) {
  std::vector<MaskSlice> slices;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    slices.push_back({begin, begin + length, begin, begin + length, MaskSliceType::full});
    begin += length;
  }
  return Mask::from_slices(begin, begin, std::move(slices));
}

TEST(EvenOutThoroughly, ExchangesOneAtomForTwo) {
  const Mask mask = packed({8, 8, 4, 4, 4, 4});
  AtomAreas atoms(mask, mask_atoms(mask, 0), 1);
  PartPacking packing(atoms, 2);
  for (int part = 0; part < packing.parts(); ++part) packing.give(part, part < 2 ? 0 : 1);
  EXPECT_DOUBLE_EQ(packing.imbalance(), 128.0 / 96);
  rebalance_thoroughly(packing);
  EXPECT_DOUBLE_EQ(packing.imbalance(), 1);
  for (const int p : {0, 1}) EXPECT_EQ(packing.room(p), 0);
}

TEST(EvenOutThoroughly, LetsABorderMakeUpForTokens) {
  // CP rank 0: 6 rows of the document of 10, and 6; CP rank 1: its other 4 rows, 6, 1 and 1.
  const Mask mask = packed({10, 6, 6, 1, 1});
  const std::vector<Range> found = {{0, 10}, {10, 16}, {16, 22}, {22, 23}, {23, 24}};
  AtomAreas atoms(mask, found, 1);
  PartPacking packing(atoms, 2);
  packing.set_filling(0);
  packing.give_end(0, 40, 1);
  packing.give(0, 0);
  packing.give(1, 0);
  for (const int part : {2, 3, 4}) packing.give(part, 1);
  ASSERT_DOUBLE_EQ(packing.imbalance(), 96.0 / 87);
  rebalance_thoroughly(packing);
  // A row of the long document for a token that sees itself alone.
  EXPECT_DOUBLE_EQ(packing.imbalance(), 1);
  for (const int p : {0, 1}) EXPECT_EQ(packing.room(p), 0);
}

/// Over four CP ranks, one long document is cut; two of them fetch keys.
class EvenOutTime : public ::testing::Test {
 protected:
  static Mask make_mask() {
    MaskSpec spec;
    spec.name = "causal_document";
    spec.tokens = 32768;
    spec.seed = 42;
    spec.lengths = "prolong64k";
    return generate_mask(spec).mask;
  }

  EvenOutTime() : mask_(make_mask()), atoms_(mask_, mask_atoms(mask_, 0), 128), cost_(mask_) {}

  PartPacking packing() {
    PartPacking packing(atoms_, 4);
    assign_parts(packing, {0.3, 0.5, true});
    return packing;
  }

  Mask mask_;
  AtomAreas atoms_;
  PartitionCost cost_;
};

TEST_F(EvenOutTime, LetsCpRanksThatWaitComputeLess) {
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

TEST_F(EvenOutTime, KeepsTokens) {
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
