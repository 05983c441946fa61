#include "core/number_runs.h"

#include <gtest/gtest.h>

namespace longca {
namespace {

TEST(NumberRuns, JoinsThoseThatFollowEachOther) {
  EXPECT_EQ(number_runs({}), "");
  EXPECT_EQ(number_runs({3}), "3");
  EXPECT_EQ(number_runs({0, 1}), "0, 1");
  EXPECT_EQ(number_runs({0, 2}), "0, 2");
  EXPECT_EQ(number_runs({0, 1, 2, 3, 4, 6, 7, 8, 10}), "0 to 4, 6 to 8, 10");
}

}  // namespace
}  // namespace longca
