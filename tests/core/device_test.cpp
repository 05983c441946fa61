#include "core/device.h"

#include <gtest/gtest.h>

#include <array>

namespace longca {
namespace {

TEST(CpuDevice, CopiesRowsBetweenStrides) {
  const std::array<char, 9> from{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'};
  std::array<char, 8> to{'.', '.', '.', '.', '.', '.', '.', '.'};
  Device::get(DeviceKind::cpu).copy_rows(to.data(), 4, from.data() + 1, 5, 2, 3);
  EXPECT_EQ(to, (std::array<char, 8>{'b', 'c', 'd', '.', 'g', 'h', 'i', '.'}));
}

}  // namespace
}  // namespace longca
