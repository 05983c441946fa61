#include "core/format_figure.h"

#include <gtest/gtest.h>

namespace longca {
namespace {

TEST(FormatFigure, KeepsThreeDigits) {
  EXPECT_EQ(format_figure(0), "0.00");
  EXPECT_EQ(format_figure(0.00012345), "0.000123");
  EXPECT_EQ(format_figure(0.0123), "0.0123");
  EXPECT_EQ(format_figure(1.234), "1.23");
  EXPECT_EQ(format_figure(12.34), "12.3");
  EXPECT_EQ(format_figure(123.44), "123.4");
  EXPECT_EQ(format_figure(12345.4), "12345");
  EXPECT_EQ(format_figure(9.994), "9.99");
  EXPECT_EQ(format_figure(9.996), "10.0") << "as 10 is";
  EXPECT_EQ(format_figure(-9.996), "-10.0");
  EXPECT_EQ(format_figure(999.96), "1000");
  EXPECT_EQ(format_figure(0.9994), "0.999");
  EXPECT_EQ(format_figure(0.9996), "1.00");
  EXPECT_EQ(format_figure(0.09996), "0.100");
  EXPECT_EQ(format_figure(0.0009996), "0.00100");
  EXPECT_EQ(format_figure(-1.234), "-1.23");
  EXPECT_EQ(format_figure(-0.0), "0.00");
  EXPECT_EQ(format_figure(-1e-12), "0.000000000");
}

}  // namespace
}  // namespace longca
