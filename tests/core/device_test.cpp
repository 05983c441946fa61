#include "core/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <set>

namespace longca {
namespace {

TEST(CpuDevice, CopiesRowsBetweenStrides) {
  const std::array<char, 9> from{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'};
  std::array<char, 8> to{'.', '.', '.', '.', '.', '.', '.', '.'};
  Device::get(DeviceKind::cpu).copy_rows(to.data(), 4, from.data() + 1, 5, 2, 3);
  EXPECT_EQ(to, (std::array<char, 8>{'b', 'c', 'd', '.', 'g', 'h', 'i', '.'}));
}

TEST(CpuDevice, NegatesAColumnOfSomeHeads) {
  // [2 tokens, 3 heads, 2 columns]
  std::array<float, 12> values{1, 2, 3, -4, 5, 6, 7, 8, 0, -0.0F, -11, 12};
  const TensorView view{values.data(), DType::float32, 2, 3, 2, 6, 2};
  const HeadColumn columns[] = {{view, 1, 2, 1}, {view, 0, 1, 0}};
  Device::get(DeviceKind::cpu).negate(columns);
  EXPECT_EQ(values, (std::array<float, 12>{-1, 2, 3, 4, 5, -6, -7, 8, 0, 0, -11, -12}));
  EXPECT_TRUE(std::signbit(values[9])) << "a zero stays as it is";
}

TEST(CpuDevice, AHashSeesEveryPairOfSigns) {
  std::array<float, 48> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) + 0.5F;
  Device& device = Device::get(DeviceKind::cpu);
  std::set<std::uint64_t> seen;
  std::size_t changes = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j, ++changes) {
      std::array<float, 48> changed = values;
      changed[i] = -changed[i];
      if (j > i) changed[j] = -changed[j];
      seen.insert(device.hash(1, changed.data(), sizeof changed));
    }
  }
  EXPECT_EQ(seen.size(), changes);
  EXPECT_FALSE(seen.contains(device.hash(1, values.data(), sizeof values)));
}

TEST(CpuDevice, NegatesNumbersOfTwoBytes) {
  std::array<BFloat16, 3> values{BFloat16(1.5F), BFloat16(0.0F), BFloat16(-2.0F)};
  const TensorView view{values.data(), DType::bfloat16, 3, 1, 1, 1, 1};
  const HeadColumn column{view, 0, 1, 0};
  Device::get(DeviceKind::cpu).negate({&column, 1});
  EXPECT_EQ(float(values[0]), -1.5F);
  EXPECT_EQ(values[1].bits, 0);
  EXPECT_EQ(float(values[2]), 2.0F);
}

}  // namespace
}  // namespace longca
