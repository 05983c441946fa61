#include "parallel/partition/token_transfer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longca {
namespace {

/// Documents of 1, 2, 3 and 4 tokens, all at CP rank 0 of two.
class FewPartsTest : public ::testing::Test {
 protected:
  FewPartsTest()
      : mask_(Mask::from_slices(10, 10,
                                {{0, 1, 0, 1, MaskSliceType::full},
                                 {1, 3, 1, 3, MaskSliceType::full},
                                 {3, 6, 3, 6, MaskSliceType::full},
                                 {6, 10, 6, 10, MaskSliceType::full}})),
        atoms_(mask_, std::vector<Range>{{0, 1}, {1, 3}, {3, 6}, {6, 10}}, 1),
        packing_(atoms_, 1) {}

  Mask mask_;
  AtomAreas atoms_;
  PartPacking packing_;
};

TEST_F(FewPartsTest, AreAllPairsAndTriplesByTokens) {
  for (int part = 0; part < 4; ++part) packing_.give(part, 0);
  EXPECT_EQ(few_parts(packing_, 0, {4, false, false}).size(), 1 + 4 + 6);
  const auto few = few_parts(packing_, 0, {4, true, false});
  EXPECT_EQ(few.size(), 1 + 4 + 6 + 4);
  for (std::size_t i = 1; i < few.size(); ++i) EXPECT_LE(few[i - 1].tokens, few[i].tokens);
  EXPECT_EQ(few.front().count(), 0);
  EXPECT_EQ(few.back().count(), 3);
  EXPECT_EQ(few.back().tokens, 2 + 3 + 4);
  EXPECT_DOUBLE_EQ(few.back().excess, 4 + 9 + 16);
  EXPECT_FALSE(few.back().has(0));
  EXPECT_TRUE(few.back().has(3));
}

TEST_F(FewPartsTest, AreOfTheShortestParts) {
  for (int part = 0; part < 4; ++part) packing_.give(part, 0);
  const auto few = few_parts(packing_, 0, {2, true, false});
  ASSERT_EQ(few.size(), 1 + 2 + 1);
  EXPECT_EQ(few.back().tokens, 1 + 2);
}

TEST_F(FewPartsTest, MayLeaveOutAtomsThatAreCut) {
  for (const int part : {0, 1, 2}) packing_.give(part, 0);
  packing_.give_end(3, 8, 0);  // two of its four rows
  packing_.give(3, 0);
  EXPECT_EQ(few_parts(packing_, 0, {9, false, false}).size(), 1 + 5 + 10);
  EXPECT_EQ(few_parts(packing_, 0, {9, false, true}).size(), 1 + 3 + 3);
}

Mask packed(const std::vector<std::int64_t>& lengths) {
  std::vector<MaskSlice> slices;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    slices.push_back({begin, begin + length, begin, begin + length, MaskSliceType::full});
    begin += length;
  }
  return Mask::from_slices(begin, begin, std::move(slices));
}

TEST(RebalanceThoroughly, ExchangesOneAtomForTwo) {
  const Mask mask = packed({8, 8, 4, 4, 4, 4});
  AtomAreas atoms(mask, mask_atoms(mask, 0), 1);
  PartPacking packing(atoms, 2);
  for (int part = 0; part < packing.parts(); ++part) packing.give(part, part < 2 ? 0 : 1);
  EXPECT_DOUBLE_EQ(packing.imbalance(), 128.0 / 96);
  rebalance_thoroughly(packing);
  EXPECT_DOUBLE_EQ(packing.imbalance(), 1);
  for (const int p : {0, 1}) EXPECT_EQ(packing.free_tokens(p), 0);
}

TEST(RebalanceThoroughly, LetsABorderMakeUpForTokens) {
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
  for (const int p : {0, 1}) EXPECT_EQ(packing.free_tokens(p), 0);
}

}  // namespace
}  // namespace longca
