#include "parallel/partition/few_parts.h"

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

}  // namespace
}  // namespace longca
