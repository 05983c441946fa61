#include "mask/range.h"

#include <gtest/gtest.h>

#include <vector>

namespace longca {
namespace {

using Ranges = std::vector<Range>;

TEST(Ranges, OutsideAreTheGapsAndBothEnds) {
  EXPECT_EQ(outside(Ranges{}, 9), (Ranges{{0, 9}}));
  EXPECT_EQ(outside(Ranges{}, 0), Ranges{});
  EXPECT_EQ(outside(Ranges{{0, 9}}, 9), Ranges{});
  EXPECT_EQ(outside(Ranges{{2, 4}, {4, 5}, {7, 8}}, 9), (Ranges{{0, 2}, {5, 7}, {8, 9}}));
  EXPECT_EQ(outside(Ranges{{0, 3}, {6, 9}}, 9), (Ranges{{3, 6}}));
}

}  // namespace
}  // namespace longca
