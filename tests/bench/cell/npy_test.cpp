#include "bench/cell/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "bench/expect_input_error.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

std::vector<float> payload(const std::string& file, std::size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(file.size() % 64, count * 4 % 64);
  std::memcpy(values.data(), file.data() + file.size() - count * 4, count * 4);
  return values;
}

TEST(Npy, IsNumPysVersionOne) {
  const TempDirectory folder;
  const HostTensor tensor(DType::bfloat16, 2, 3, 4);
  for (int i = 0; i < 24; ++i)
    tensor.view().row<BFloat16>(0, 0)[i] = BFloat16(static_cast<float>(i) / 2);
  write_npy(folder / "t.npy", tensor.view());
  const std::string file = read_file(folder / "t.npy");
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto length =
      static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
  EXPECT_EQ((10 + length) % 64, 0);
  EXPECT_EQ(file.size(), static_cast<std::size_t>(10 + length + 24 * 4));
  EXPECT_EQ(file[static_cast<std::size_t>(9 + length)], '\n');
  EXPECT_TRUE(file.substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }"));
  const auto values = payload(file, 24);
  for (std::size_t i = 0; i < 24; ++i) EXPECT_EQ(values[i], static_cast<float>(i) / 2);
}

TEST(Npy, WidensEveryHalf) {
  const TempDirectory folder;
  const HostTensor tensor(DType::float16, 1, 1, 65536);
  for (int i = 0; i < 65536; ++i) {
    tensor.view().row<std::uint16_t>(0, 0)[i] = static_cast<std::uint16_t>(i);
  }
  write_npy(folder / "h.npy", tensor.view());
  const auto values = payload(read_file(folder / "h.npy"), 65536);
  for (int bits = 0; bits < 65536; ++bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    double expected =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) expected = fraction == 0 ? INFINITY : NAN;
    if (bits >> 15 != 0) expected = -expected;
    const auto value = static_cast<double>(values[static_cast<std::size_t>(bits)]);
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : value == expected) << bits;
    if (std::isnan(expected)) continue;
    EXPECT_EQ(std::signbit(value), bits >> 15 != 0) << bits;
  }
}

TEST(Npy, LseIsHeadsByTokens) {
  const TempDirectory folder;
  const HostLse lse(2, 3);
  for (int i = 0; i < 6; ++i) lse.view().data[i] = static_cast<float>(i);
  write_npy(folder / "lse.npy", lse.view());
  const std::string file = read_file(folder / "lse.npy");
  EXPECT_NE(file.find("'shape': (2, 3)"), std::string::npos);
  EXPECT_EQ(payload(file, 6), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, AListHasOneDimension) {
  const TempDirectory folder;
  const std::vector<float> values = {0.5F, -1, 2};
  write_npy(folder / "list.npy", values);
  const std::string file = read_file(folder / "list.npy");
  EXPECT_NE(file.find("'shape': (3,), }"), std::string::npos);
  EXPECT_EQ(payload(file, 3), values);
}

TEST(Npy, AFileThatCannotBeWrittenIsNamed) {
  const HostLse lse(1, 1);
  lse.view().data[0] = 0;
  expect_input_error([&] { write_npy("/nowhere/lse.npy", lse.view()); }, "/nowhere/lse.npy");
}

}  // namespace
}  // namespace longca::testing
