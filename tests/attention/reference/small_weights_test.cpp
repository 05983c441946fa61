#include "attention/reference/small_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"

namespace longca {
namespace {

using test::Outputs;
using test::small_mask;
using test::square_problem;
using testing::StartsWith;

constexpr std::int64_t kKeys = 1024;

/// Every row has one key, the last, of weight 1, and `others` in all the others.
class OneLargeKey : public testing::Test {
 protected:
  explicit OneLargeKey(double others = 0x1p-25) {
    problem_ = square_problem(kKeys, 1, 1, 8, DType::float32);
    problem_.softmax_scale = 1;
    inputs_ = make_inputs(problem_, 1);
    for (std::int64_t token = 0; token < kKeys; ++token) {
      std::ranges::fill_n(inputs_.q.view().row<float>(token, 0), 8, 0.0F);
      std::ranges::fill_n(inputs_.k.view().row<float>(token, 0), 8, 0.0F);
      inputs_.q.view().row<float>(token, 0)[0] = 1;
    }
    inputs_.k.view().row<float>(kKeys - 1, 0)[0] = static_cast<float>(-std::log(others));
  }

  ReferenceProblem reference_problem() const { return {problem_, mask_, &inputs_}; }

  /// What a kernel returns whose lse of row 7 is off by `error`.
  Verdict verdict_on(double error) const {
    const Outputs outputs = test::solve(problem_, mask_, inputs_);
    float& lse = outputs.lse.view().head(0)[7];
    lse = static_cast<float>(double{lse} + error);
    const Reference reference(problem_, mask_, inputs_, {1000, 1}, 1);
    return check_forward(reference, outputs);
  }

  /// The error of lse of a float32 sum in the given order.
  static double error_of_sum(bool large_first) {
    float sum = large_first ? 1 : 0;
    for (std::int64_t i = 1; i < kKeys; ++i) sum += 0x1p-25F;
    if (!large_first) sum += 1;
    return std::log(double{sum}) - std::log1p((kKeys - 1) * 0x1p-25);
  }

  Problem problem_;
  Inputs inputs_;
  Mask mask_ = small_mask("full", kKeys);
};

TEST_F(OneLargeKey, AFloat32SumLosesTheOthersAfterItAndNotBefore) {
  const double share = share_of_small_weights(reference_problem(), 0, 7);
  EXPECT_NEAR(share, (kKeys - 1) * 0x1p-25, 1e-7);
  EXPECT_NEAR(error_of_sum(true), -share, 1e-7);
  EXPECT_NEAR(error_of_sum(false), 0, 1e-7);
}

TEST_F(OneLargeKey, WhatAFloat32SumLosesIsNoFault) {
  const Verdict verdict = verdict_on(error_of_sum(true));
  EXPECT_TRUE(verdict.ok) << verdict.reason;
  EXPECT_GT(verdict.worst_ratio, 0.5);  // far beyond lse_bound alone
  EXPECT_NEAR(verdict.error_lse.value(), -error_of_sum(true), 2e-6);
}

TEST_F(OneLargeKey, MoreThanThatIs) {
  for (const double factor : {1.5, -1.5}) {
    EXPECT_THAT(verdict_on(factor * error_of_sum(true)).reason, StartsWith("lse is "));
  }
}

TEST_F(OneLargeKey, MoreRowsThanAreRecomputedAreWrong) {
  const Outputs outputs = test::solve(problem_, mask_, inputs_);
  for (std::int64_t row = 0; row < 65; ++row) {
    outputs.lse.view().head(0)[row] += static_cast<float>(error_of_sum(true));
  }
  const Reference reference(problem_, mask_, inputs_, {1000, 1}, 1);
  EXPECT_THAT(check_forward(reference, outputs).reason, StartsWith("lse is "));
}

/// One above 2⁻²⁴ each: a float32 sum sees them.
class OneLargeKeyOfMany : public OneLargeKey {
 protected:
  OneLargeKeyOfMany() : OneLargeKey(0x1p-23) {}
};

TEST_F(OneLargeKeyOfMany, KeysThatASumSeesAllowNothing) {
  EXPECT_EQ(share_of_small_weights(reference_problem(), 0, 7), 0);
  EXPECT_THAT(verdict_on(error_of_sum(true)).reason, StartsWith("lse is "));
}

TEST_F(OneLargeKey, OfTheRowsOwnKeysSinkAndSoftcap) {
  mask_ = small_mask("causal", kKeys);
  EXPECT_EQ(share_of_small_weights(reference_problem(), 0, 7), 0);  // eight equal keys
  EXPECT_GT(share_of_small_weights(reference_problem(), 0, kKeys - 1), 1e-5);
  problem_.softcap = 5;  // no key is e⁵ above another
  EXPECT_EQ(share_of_small_weights(reference_problem(), 0, kKeys - 1), 0);
  problem_.softcap = 0;
  problem_.sink = true;
  inputs_.sink = HostTensor(DType::float32, 1, 1, 1);
  *static_cast<float*>(inputs_.sink.view().data) = 40;
  EXPECT_NEAR(share_of_small_weights(reference_problem(), 0, 7), 8 * std::exp(-40), 1e-16);
}

TEST(SmallWeights, OfNormalInputsAreNone) {
  const Problem problem = square_problem(1000, 2, 1, 64, DType::bfloat16);
  const Inputs inputs = make_inputs(problem, 1);
  const ReferenceProblem reference{problem, small_mask("full", 1000), &inputs};
  for (const std::int64_t row : {0, 500, 999})
    EXPECT_EQ(share_of_small_weights(reference, 1, row), 0);
}

}  // namespace
}  // namespace longca
