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

float of_half(std::uint16_t bits) {
  Float16 value;
  value.bits = bits;
  return static_cast<float>(value);
}

// Neighbours are a step apart, and a step is exact in float32: all cuts between roundings are
// known.
TEST(Float16, RoundsEveryNumberToTheNearestEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float below = of_half(bits);
    const float above = of_half(bits + 1);
    ASSERT_LT(below, above) << bits;
    ASSERT_EQ(Float16(below).bits, bits);
    ASSERT_EQ(Float16(-below).bits, bits | 0x8000);
    const float middle = (below + above) / 2;
    ASSERT_EQ(Float16(middle).bits, bits + bits % 2) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0F)).bits, bits) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 1e6F)).bits, bits + 1) << bits;
  }
}

TEST(Float16, KnowsItsLandmarks) {
  EXPECT_EQ(of_half(0x3c00), 1);
  EXPECT_EQ(of_half(0x0001), 0x1p-24F);
  EXPECT_EQ(of_half(0x0400), 0x1p-14F);
  EXPECT_EQ(of_half(0x7bff), 65504);
  EXPECT_EQ(Float16(65519.99F).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(Float16(1e30F).bits, 0x7c00);
  EXPECT_EQ(Float16(0x1p-25F).bits, 0);  // a tie
  EXPECT_EQ(Float16(1e-30F).bits, 0);
}

TEST(Float16, KeepsTheSpecialValues) {
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_EQ(static_cast<float>(Float16(-INFINITY)), -INFINITY);
  EXPECT_EQ(Float16(-0.0F).bits, 0x8000);
}

TEST(DTypeNames, GiveTheirTypes) {
  const auto bytes = [](DType dtype) {
    return with_type_of(dtype, []<typename T>(T) { return sizeof(T); });
  };
  EXPECT_EQ(bytes(DType::float32), 4);
  EXPECT_EQ(with_type_of(DType::bfloat16, [](auto x) { return float(decltype(x)(1 + 0x1p-9F)); }),
            1);
  EXPECT_EQ(with_type_of(DType::float16, [](auto x) { return float(decltype(x)(1 + 0x1p-9F)); }),
            1 + 0x1p-9F);
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
