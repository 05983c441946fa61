#include "parallel/plan/deal_cost.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longca {
namespace {

constexpr double kCall = 1000;

Mask documents(SliceType type) {
  return Mask::from_slices(12, 12, {{0, 8, 0, 8, type}, {8, 12, 8, 12, type}});
}

double most(const DealCost& cost, const std::vector<std::vector<Range>>& dealt) {
  double most = 0;
  for (const PositionCost& of_position : cost.of(dealt)) most = std::max(most, of_position.total());
  return most;
}

TEST(DealCost, WholeDocumentsCostNothing) {
  const DealCost cost(documents(SliceType::full));
  EXPECT_EQ(most(cost, {{{0, 8}}, {{8, 12}}}), 0);
  EXPECT_EQ(most(cost, {{{0, 12}}, {}}), 0);
}

TEST(DealCost, CountsKeysThatArriveRowsThatSeeThemAndCalls) {
  // The second position's rows 5 to 7 see keys 0 to 4; the first one sees none of its keys.
  const DealCost causal(documents(SliceType::causal));
  EXPECT_EQ(most(causal, {{{0, 5}}, {{5, 12}}}), 5 + 3 + kCall);
  // Both ways: 5 rows see 3 keys of the other position, and 5 keys leave.
  const DealCost full(documents(SliceType::full));
  EXPECT_EQ(most(full, {{{0, 5}}, {{5, 12}}}), 5 + 5 + kCall);
}

TEST(DealCost, CountsKeysThatLeaveForEveryPositionThatSeesThem) {
  // Keys 0 to 1999 leave twice: more than what the others receive, with two rows and a call.
  const DealCost cost(Mask::from_slices(2004, 2004, {{0, 2004, 0, 2004, SliceType::causal}}));
  EXPECT_EQ(most(cost, {{{0, 2000}}, {{2000, 2002}}, {{2002, 2004}}}), 4000);
  EXPECT_EQ(most(cost, {{{0, 2000}}, {{2000, 2004}}}), 2000 + 4 + kCall);
}

TEST(DealCost, RowsThatFollowEachOtherAreOneCall) {
  const auto causal = [](std::int64_t begin, std::int64_t end) {
    return Slice{begin, end, begin, end, SliceType::causal};
  };
  // Rows 4, 5 and 8 to 13 see keys of the first position and lie one behind the other.
  const DealCost beside(Mask::from_slices(14, 14, {causal(0, 6), causal(6, 14)}));
  EXPECT_EQ(most(beside, {{{0, 4}, {6, 8}}, {{4, 6}, {8, 14}}}), 6 + 8 + kCall);
  // With a whole document between them they take two calls.
  const DealCost apart(Mask::from_slices(14, 14, {causal(0, 6), causal(6, 8), causal(8, 14)}));
  EXPECT_EQ(most(apart, {{{0, 4}, {8, 10}}, {{4, 8}, {10, 14}}}), 6 + 6 + 2 * kCall);
}

}  // namespace
}  // namespace longca
