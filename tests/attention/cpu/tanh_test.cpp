// tanh of the softcap, on every instruction set, against the C library in float64.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/tanh_test.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "attention/cpu/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

float tanh_of(float x) {
  const hn::CappedTag<float, 16> d;
  return hn::GetLane(tanh(d, hn::Set(d, x)));
}

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace longca::cpu {
namespace {

HWY_EXPORT(tanh_of);

template <typename Body>
void on_every_tanh_target(Body&& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Tanh, HasASmallRelativeErrorAndStaysWithinOne) {
  on_every_tanh_target([] {
    for (int i = -20 * 8192; i <= 20 * 8192; ++i) {
      const float x = static_cast<float>(i) / 8192.0F;
      const float found = HWY_DYNAMIC_DISPATCH(tanh_of)(x);
      const double exact = std::tanh(static_cast<double>(x));
      ASSERT_LE(std::abs(static_cast<double>(found) - exact), 5e-7 * std::abs(exact)) << "at " << x;
      ASSERT_LE(std::abs(found), 1.0F) << "at " << x;
    }
  });
}

TEST(Tanh, KeepsSmallNumbersSignsAndNaN) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  on_every_tanh_target([] {
    const auto tanh = [](float x) { return HWY_DYNAMIC_DISPATCH(tanh_of)(x); };
    EXPECT_EQ(tanh(0.0F), 0.0F);
    EXPECT_FLOAT_EQ(tanh(1e-20F), 1e-20F);
    EXPECT_FLOAT_EQ(tanh(-1e-3F), -std::tanh(1e-3F));
    EXPECT_NEAR(tanh(kInfinity), 1.0F, 2e-7F);
    EXPECT_NEAR(tanh(-3e38F), -1.0F, 2e-7F);
    EXPECT_TRUE(std::isnan(tanh(std::numeric_limits<float>::quiet_NaN())));
  });
}

}  // namespace
}  // namespace longca::cpu
#endif
