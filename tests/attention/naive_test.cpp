// Values against the reference: reference/honest_kernels_test.cpp. Here, what a plan promises
// beyond.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "attention/solved.h"
#include "core/error.h"

namespace longca {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;

constexpr std::int64_t kTokens = 70;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Mask causal(std::int64_t tokens) {
  return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::causal}});
}

void expect_near(const ConstTensorView& a, const ConstTensorView& b, float tolerance) {
  for (std::int64_t t = 0; t < a.tokens; ++t) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      for (std::int64_t c = 0; c < a.dim; ++c) {
        ASSERT_NEAR(a.row<float>(t, h)[c], b.row<float>(t, h)[c], tolerance) << t << ' ' << h;
      }
    }
  }
}

/// The causal mask in two parts by key: below `split`, and from it on (which early rows do not
/// see).
struct Parts {
  Mask low, high;
};
Parts split_causal(std::int64_t split) {
  const auto part = [](std::vector<MaskSlice> slices) {
    return Mask::from_slices(kTokens, kTokens, std::move(slices));
  };
  return {part({{0, split, 0, split, MaskSliceType::causal},
                {split, kTokens, 0, split, MaskSliceType::full}}),
          part({{split, kTokens, split, kTokens, MaskSliceType::causal}})};
}

class NaiveAccumulate : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(DimensionsOfV, NaiveAccumulate, testing::Values(24, 16));

TEST_P(NaiveAccumulate, MergesPartsIntoTheWholeSoftmax) {
  Problem problem = square_problem(kTokens, 4, 2, 24, DType::float32);
  problem.head_dim_v = GetParam();
  const Inputs inputs = make_inputs(problem, 1);
  const Outputs whole = solve(problem, causal(kTokens), inputs);

  problem.accumulate = true;
  const Parts parts = split_causal(30);
  Outputs merged(problem);
  for (std::int64_t h = 0; h < 4; ++h) {
    std::fill_n(merged.lse.view().head(h), kTokens, -kInfinity);  // o stays poisoned: nothing seen
  }
  for (const Mask* mask : {&parts.low, &parts.high}) {
    ForwardArgs args = merged.forward_args(inputs);
    args.accumulate = true;
    make_naive_cpu()->plan(problem, *mask)->forward(args);
  }
  expect_near(merged.o.view(), whole.o.view(), 2e-6F);
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      EXPECT_NEAR(merged.lse.view().head(h)[t], whole.lse.view().head(h)[t], 2e-6F);
    }
  }

  for (const HostTensor* gradient : {&merged.dq, &merged.dk, &merged.dv}) {
    std::fill_n(gradient->view().row<float>(0, 0), gradient->bytes() / 4, 0.0F);
  }
  for (const Mask* mask : {&parts.low, &parts.high}) {
    BackwardArgs args = merged.backward_args(inputs);
    args.accumulate = true;
    make_naive_cpu()->plan(problem, *mask)->backward(args);
  }
  expect_near(merged.dq.view(), whole.dq.view(), 1e-5F);
  expect_near(merged.dk.view(), whole.dk.view(), 1e-5F);
  expect_near(merged.dv.view(), whole.dv.view(), 1e-5F);
}

TEST(NaiveMerge, KeepsWhatItHasWhereItSeesNothing) {
  Problem problem = square_problem(3, 1, 1, 8, DType::bfloat16);
  problem.accumulate = true;
  const Inputs inputs = make_inputs(problem, 1);
  HostTensor o(DType::float32, 3, 1, 8);
  HostLse lse(1, 3);
  std::fill_n(o.view().row<float>(0, 0), 24, 0.25F);
  std::fill_n(lse.view().head(0), 3, 1.5F);
  ForwardArgs args{inputs.q.view(), inputs.k.view(), inputs.v.view(), o.view(), lse.view()};
  args.accumulate = true;
  make_naive_cpu()->plan(problem, Mask::from_slices(3, 3, {}))->forward(args);
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(o.view().row<float>(0, 0)[i], 0.25F);
  for (std::int64_t t = 0; t < 3; ++t) EXPECT_EQ(lse.view().head(0)[t], 1.5F);
}

TEST(NaivePlan, ItsWorkspaceGrowsWithTheSquareOfTheTokens) {
  const auto bytes = [](std::int64_t tokens, bool backward) {
    Problem problem = square_problem(tokens, 8, 8, 16, DType::float32);
    problem.backward = backward;
    return make_naive_cpu()->plan(problem, causal(tokens))->workspace_bytes();
  };
  EXPECT_GE(bytes(512, false), 512 * 512 * 4);
  EXPECT_LT(bytes(512, false), 2 * 512 * 512 * 4) << "one head's matrix at a time";
  EXPECT_GE(bytes(512, true), 2 * 512 * 512 * 4);
  EXPECT_GT(bytes(1024, true), 3 * bytes(512, true));
}

TEST(NaivePlan, ABackwardPassThatWasNotPlannedIsRefused) {
  Problem problem = square_problem(4, 1, 1, 8, DType::float32);
  problem.backward = false;
  const Inputs inputs = make_inputs(problem, 1);
  Outputs outputs(problem);
  const auto plan = make_naive_cpu()->plan(problem, causal(4));
  EXPECT_THROW(plan->backward(outputs.backward_args(inputs)), InternalError);
}

}  // namespace
}  // namespace longca
