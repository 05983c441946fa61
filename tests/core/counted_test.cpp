#include "core/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace longca::testing {
namespace {

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(counted(0, "cell"), "0 cells");
  EXPECT_EQ(counted(1, "cell"), "1 cell");
  EXPECT_EQ(counted(std::size_t{2}, "more reason"), "2 more reasons");
  EXPECT_EQ(counted(std::int64_t{1} << 40, "cell"), "1099511627776 cells");
}

}  // namespace
}  // namespace longca::testing
