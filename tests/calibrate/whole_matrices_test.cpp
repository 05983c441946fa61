#include "calibrate/whole_matrices.h"

#include <gtest/gtest.h>

#include <limits>

namespace longca::calibrate {
namespace {

constexpr std::int64_t kRows = 64;

std::vector<float> product_of(const WholeMatrices& matrices) {
  const std::vector<float> a = matrices.a<float>();
  const std::vector<float> b = matrices.b<float>();
  std::vector<float> c(a.size());
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kRows; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < kRows; ++k) {
        sum +=
            a[static_cast<std::size_t>(i * kRows + k)] * b[static_cast<std::size_t>(j * kRows + k)];
      }
      c[static_cast<std::size_t>(i * kRows + j)] = sum;
    }
  }
  return c;
}

TEST(WholeMatrices, TheProductPasses) {
  const WholeMatrices matrices(kRows);
  const std::vector<float> c = product_of(matrices);
  for (std::uint64_t seed = 0; seed < 10; ++seed) EXPECT_TRUE(matrices.are_multiplied_to(c, seed));
}

TEST(WholeMatrices, OneWrongElementNever) {
  const WholeMatrices matrices(kRows);
  const std::vector<float> c = product_of(matrices);
  for (const std::size_t at : {std::size_t{0}, c.size() / 2 + 5, c.size() - 1}) {
    for (const float wrong : {c[at] + 1, 0.5F, std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity()}) {
      std::vector<float> changed = c;
      changed[at] = wrong;
      EXPECT_FALSE(matrices.are_multiplied_to(changed, 7)) << at << ' ' << wrong;
    }
  }
  EXPECT_FALSE(matrices.are_multiplied_to({}, 7));
}

TEST(WholeMatrices, BothTypesHoldTheSameNumbers) {
  const WholeMatrices matrices(kRows);
  const std::vector<float> wide = matrices.a<float>();
  const std::vector<std::uint16_t> narrow = matrices.a<std::uint16_t>();
  bool has[3] = {};
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const std::uint16_t bits = wide[i] == 0 ? 0 : wide[i] > 0 ? 0x3f80 : 0xbf80;
    ASSERT_EQ(narrow[i], bits);
    has[static_cast<int>(wide[i]) + 1] = true;
  }
  EXPECT_TRUE(has[0] && has[1] && has[2]);
  EXPECT_NE(wide, matrices.b<float>());
}

}  // namespace
}  // namespace longca::calibrate
