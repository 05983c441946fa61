#include "core/rounding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace longca {
namespace {

static_assert(ceil_div(0, 8) == 0 && ceil_div(1, 8) == 1 && ceil_div(8, 8) == 1);
static_assert(ceil_div(9, 8) == 2 && ceil_div(7, 1) == 7);
static_assert(round_up(0, 8) == 0 && round_up(1, 8) == 8 && round_up(8, 8) == 8);
static_assert(round_up(9, 8) == 16 && round_up(10, 3) == 12);

static_assert(std::is_same_v<decltype(ceil_div(1, std::int64_t{1})), std::int64_t>);
static_assert(std::is_same_v<decltype(ceil_div(std::size_t{1}, 1)), std::size_t>);
static_assert(std::is_same_v<decltype(ceil_div(1, 1U)), unsigned>);
static_assert(std::is_same_v<decltype(round_up(1, std::int64_t{1})), std::int64_t>);
static_assert(std::is_same_v<decltype(round_up(1, 1)), int>);

// The sum is formed in the common type, not in that of the value.
TEST(Rounding, HoldsTheSumInTheCommonType) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(ceil_div(kMax, std::int64_t{128}), std::int64_t{1} << 24);
  EXPECT_EQ(round_up(kMax, std::int64_t{128}), std::int64_t{1} << 31);
  EXPECT_EQ(ceil_div(std::int64_t{1} << 40, 3), 366503875926);
}

RC_GTEST_PROP(Rounding, GivesTheLeastMultipleThatHoldsTheValue,
              (std::uint32_t value, std::uint16_t below)) {
  const std::int64_t unit = std::int64_t{below} + 1;
  const std::int64_t multiple = round_up(value, unit);
  RC_ASSERT(multiple % unit == 0);
  RC_ASSERT(multiple >= value && multiple - value < unit);
  RC_ASSERT(ceil_div(value, unit) * unit == multiple);
}

}  // namespace
}  // namespace longca
