#include "core/dtype.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace longca {
namespace {

TEST(BFloat16, RoundsToNearestEven) {
  const auto rounded = [](std::uint32_t bits) { return BFloat16(std::bit_cast<float>(bits)).bits; };
  EXPECT_EQ(rounded(0x3f808000), 0x3f80);  // a tie goes to the even neighbour below
  EXPECT_EQ(rounded(0x3f818000), 0x3f82);  // and above
  EXPECT_EQ(rounded(0x3f808001), 0x3f81);
  EXPECT_EQ(rounded(0x7f7fffff), 0x7f80);  // the largest float32 overflows to infinity
}

TEST(BFloat16, KeepsTheSpecialValues) {
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_EQ(static_cast<float>(BFloat16(-INFINITY)), -INFINITY);
  EXPECT_EQ(BFloat16(-0.0F).bits, 0x8000);
}

RC_GTEST_PROP(BFloat16, SurvivesTheWayThroughFloat, (std::uint16_t bits)) {
  BFloat16 value;
  value.bits = bits;
  const auto wide = static_cast<float>(value);
  RC_ASSERT(std::isnan(wide) || BFloat16(wide).bits == bits);
}

TEST(DTypeNames, ReadBack) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("bf16"), std::nullopt);
  EXPECT_EQ(size_of(DType::bfloat16), 2);
}

}  // namespace
}  // namespace longca
