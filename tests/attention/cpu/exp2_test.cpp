// exp2 of the softmax, on every instruction set, against the C library in float64.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/exp2_test.cpp"
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

float exp2_of(float x) {
  const hn::CappedTag<float, 16> d;
  return hn::GetLane(exp2(d, hn::Set(d, x)));
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

HWY_EXPORT(exp2_of);

template <typename Body>
void on_every_target(Body&& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

TEST(Exp2, HasASmallRelativeError) {
  on_every_target([] {
    double worst = 0;
    for (int i = -126 * 4096; i <= 4096; ++i) {
      const float x = static_cast<float>(i) / 4096.0F;
      const double exact = std::exp2(static_cast<double>(x));
      const double error =
          std::abs(static_cast<double>(HWY_DYNAMIC_DISPATCH(exp2_of)(x)) - exact) / exact;
      ASSERT_LE(error, 5e-7) << "at " << x;
      worst = std::max(worst, error);
    }
    EXPECT_GT(worst, 0);
  });
}

TEST(Exp2, IsExactWhereTheSoftmaxNeedsIt) {
  on_every_target([] {
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp2_of)(0.0F), 1.0F);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(exp2_of)(-1.0F), 0.5F);
  });
}

TEST(Exp2, VanishesFarBelow) {
  on_every_target([] {
    for (const float x : {-127.0F, -1e4F, -1e30F, -std::numeric_limits<float>::infinity()}) {
      const float value = HWY_DYNAMIC_DISPATCH(exp2_of)(x);
      EXPECT_GE(value, 0.0F) << "at " << x;
      EXPECT_LE(value, std::exp2(-126.0F)) << "at " << x;
    }
  });
}

TEST(Exp2, KeepsNaN) {
  on_every_target([] {
    EXPECT_TRUE(std::isnan(HWY_DYNAMIC_DISPATCH(exp2_of)(std::numeric_limits<float>::quiet_NaN())));
  });
}

}  // namespace
}  // namespace longca::cpu
#endif  // HWY_ONCE
