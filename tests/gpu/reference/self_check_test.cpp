// A reference that is wrong itself must not judge: its samples in float64 say so.
#include "attention/reference/cuda/self_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/reference/cuda/device_results.h"
#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"
#include "core/error.h"
#include "gpu/gpu_test.h"

namespace longca {
namespace {

class SelfCheck : public testing::GpuTest, public ::testing::WithParamInterface<DType> {
 protected:
  static constexpr std::int64_t kTokens = 1000;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    shape_ = test::square_problem(kTokens, 4, 2, 64, GetParam());
    shape_.device = DeviceKind::cuda;
    inputs_ = make_inputs(shape_, 1);
  }

  /// What the check says of results that were computed from `computed`, held to `right`.
  static std::string found(const ReferenceProblem& right, const ReferenceProblem& computed,
                           bool gradients) {
    DeviceResults results(computed, all_tiles(computed.shape, {0, 1}));
    results.compute_query_gradients();
    results.compute_key_gradients();
    try {
      gradients ? check_gradient_samples(right, results, 7)
                : check_forward_samples(right, results, 7);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "";
  }

  Problem shape_;
  Inputs inputs_;
  Mask mask_ = test::small_mask("causal", kTokens);
};

INSTANTIATE_TEST_SUITE_P(Dtypes, SelfCheck,
                         ::testing::Values(DType::float32, DType::bfloat16, DType::float16),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST_P(SelfCheck, HoldsWhatIsRight) {
  const ReferenceProblem problem{shape_, mask_, &inputs_};
  EXPECT_EQ(found(problem, problem, false), "");
  EXPECT_EQ(found(problem, problem, true), "");
}

TEST_P(SelfCheck, FindsADiagonalOffByOne) {
  const ReferenceProblem problem{shape_, mask_, &inputs_};
  const ReferenceProblem wrong{shape_, test::shifted_causal(kTokens, -1), &inputs_};
  EXPECT_THAT(found(problem, wrong, false),
              ::testing::StartsWith("the reference itself disagrees"));
  EXPECT_THAT(found(problem, wrong, true), ::testing::StartsWith("the reference itself disagrees"));
}

TEST_P(SelfCheck, FindsALastKeyDropped) {
  const Mask full = test::small_mask("full", kTokens);
  const ReferenceProblem problem{shape_, full, &inputs_};
  const ReferenceProblem wrong{shape_, test::without_last_key(full), &inputs_};
  EXPECT_THAT(found(problem, wrong, false), ::testing::HasSubstr("its lse of head"));
  EXPECT_THAT(found(problem, wrong, true), ::testing::StartsWith("the reference itself disagrees"));
}

TEST_P(SelfCheck, FindsAScaleOffByOnePermille) {
  Problem other = shape_;
  other.softmax_scale = shape_.scale() * 1.001F;
  const ReferenceProblem problem{shape_, mask_, &inputs_};
  const ReferenceProblem wrong{other, mask_, &inputs_};
  EXPECT_THAT(found(problem, wrong, false), ::testing::HasSubstr("its lse of head"));
  EXPECT_THAT(found(problem, wrong, true), ::testing::HasSubstr("its dq of head"));
}

TEST_P(SelfCheck, FindsInputsOfAnotherSeed) {
  const Inputs previous = make_inputs(shape_, 2);
  const ReferenceProblem problem{shape_, mask_, &inputs_};
  const ReferenceProblem wrong{shape_, mask_, &previous};
  EXPECT_NE(found(problem, wrong, false), "");
  EXPECT_NE(found(problem, wrong, true), "");
}

}  // namespace
}  // namespace longca
