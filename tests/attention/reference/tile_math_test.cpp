#include "attention/reference/tile_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/memory.h"

namespace longca {
namespace {

constexpr std::int64_t kLanes = 64;

template <typename Real>
class TileMath : public testing::Test {
 protected:
  static HostBuffer random_reals(std::int64_t count, double low, double high) {
    HostBuffer buffer(count * static_cast<std::int64_t>(sizeof(Real)));
    std::mt19937 random(17);
    std::uniform_real_distribution<double> value(low, high);
    for (std::int64_t i = 0; i < count; ++i)
      buffer.as<Real>()[i] = static_cast<Real>(value(random));
    return buffer;
  }
};
using Reals = testing::Types<double, float>;
TYPED_TEST_SUITE(TileMath, Reals);

TYPED_TEST(TileMath, ProductIsTheTripleLoopForBothStorageOrders) {
  using Real = TypeParam;
  const Real tolerance = 64 * std::numeric_limits<Real>::epsilon();
  for (const std::int64_t m : {4, 64, 100}) {
    for (const std::int64_t k : {1, 7, 64}) {
      const HostBuffer a = this->random_reals(m * k, -1, 1);
      const HostBuffer b = this->random_reals(k * kLanes, -1, 1);
      for (const bool transposed : {false, true}) {
        HostBuffer c = this->random_reals(m * kLanes, -1, 1);
        const HostBuffer before = this->random_reals(m * kLanes, -1, 1);
        const std::int64_t a_row = transposed ? 1 : k;
        const std::int64_t a_column = transposed ? m : 1;
        tile_product(a.as<Real>(), a_row, a_column, b.as<Real>(), c.as<Real>(), m, k);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < kLanes; ++j) {
            Real sum = before.as<Real>()[i * kLanes + j];
            for (std::int64_t l = 0; l < k; ++l) {
              sum += a.as<Real>()[i * a_row + l * a_column] * b.as<Real>()[l * kLanes + j];
            }
            ASSERT_NEAR(c.as<Real>()[i * kLanes + j], sum, tolerance) << m << ' ' << k;
          }
        }
      }
    }
  }
}

TYPED_TEST(TileMath, ExponentialAgreesWithTheLibrarys) {
  using Real = TypeParam;
  constexpr std::int64_t kCount = 64 * 100;
  const HostBuffer x = this->random_reals(kCount, -80, 80);
  HostBuffer y = this->random_reals(kCount, -80, 80);
  exp_in_place(y.as<Real>(), kCount);
  for (std::int64_t i = 0; i < kCount; ++i) {
    const Real expected = std::exp(x.as<Real>()[i]);
    ASSERT_NEAR(y.as<Real>()[i], expected, 4 * std::numeric_limits<Real>::epsilon() * expected);
  }
}

TYPED_TEST(TileMath, ExponentialOfMinusInfinityIsZeroAndOfZeroOne) {
  using Real = TypeParam;
  HostBuffer x = this->random_reals(kLanes, 0, 1);
  std::fill_n(x.template as<Real>(), kLanes, -std::numeric_limits<Real>::infinity());
  x.template as<Real>()[5] = 0;
  exp_in_place(x.template as<Real>(), kLanes);
  for (std::int64_t i = 0; i < kLanes; ++i) {
    EXPECT_EQ(x.template as<Real>()[i], i == 5 ? Real(1) : Real(0));
  }
}

}  // namespace
}  // namespace longca
