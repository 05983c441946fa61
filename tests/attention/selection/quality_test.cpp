#include "attention/selection/quality.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "attention/selection/select_blocks.h"

namespace longca::testing {
namespace {

Problem problem_of(std::int64_t tokens) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = tokens;
  problem.heads_q = 4;
  problem.heads_k = 2;
  problem.head_dim = 64;
  return problem;
}

MaskSpec spec_of(const Problem& problem, double density, bool causal) {
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = problem.tokens_q;
  spec.heads_q = problem.heads_q;
  spec.heads_k = problem.heads_k;
  spec.block = 16;
  spec.density = density;
  spec.block_causal = causal;
  return spec;
}

TEST(SelectionQuality, OfAllBlocksIsThatOfFullAttention) {
  const Problem problem = problem_of(300);
  const Inputs inputs = make_inputs(problem, 1);
  for (const bool causal : {false, true}) {
    const Mask mask = generate_mask(spec_of(problem, 1.0, causal)).mask;
    const SelectionQuality quality = selection_quality(problem, mask, inputs, 1);
    EXPECT_NEAR(quality.kept_mass, 1, 1e-12) << causal;
    EXPECT_NEAR(quality.error_full, 0, 1e-12) << causal;
    EXPECT_EQ(quality.rows, 32);
  }
}

TEST(SelectionQuality, IsTheShareOfKeysWhereScoresAreEqual) {
  const Problem problem = problem_of(160);
  Inputs inputs = make_inputs(problem, 1);
  Device::get(DeviceKind::cpu).fill(inputs.k.view().data, 0, inputs.k.bytes());
  const Mask mask = generate_mask(spec_of(problem, 0.3, false)).mask;
  EXPECT_NEAR(selection_quality(problem, mask, inputs, 1).kept_mass, 0.3, 1e-12);
}

/// One row by hand: two keys of one block are kept, two are not.
void expect_one_row_right(float softcap, std::optional<float> sink) {
  SCOPED_TRACE(fmt::format("softcap {}, sink {}", softcap, sink.value_or(NAN)));
  Problem problem;
  problem.tokens_q = 1;
  problem.tokens_k = 4;
  problem.head_dim = 1;
  problem.softcap = softcap;
  problem.sink = sink.has_value();
  Inputs inputs = make_inputs(problem, 1);
  if (sink) inputs.sink.view().row<float>(0, 0)[0] = *sink;
  inputs.q.view().row<float>(0, 0)[0] = 1;
  for (int i = 0; i < 4; ++i) {
    inputs.k.view().row<float>(i, 0)[0] = static_cast<float>(i);
    inputs.v.view().row<float>(i, 0)[0] = static_cast<float>(10 * i);
  }
  const Mask mask = Mask::from_blocks(1, 4, {{0, 1, 0, 4, MaskSliceType::full}},
                                      {{0, 1}, {0, 2, 4}, 1, {0, 1}, {1}});
  double all = 0, full = 0, kept = 0, sparse = 0;
  for (int i = 0; i < 4; ++i) {
    const double cap{softcap};
    const double score = cap > 0 ? cap * std::tanh(i / cap) : i;
    const double p = std::exp(score);
    all += p;
    full += p * 10 * i;
    if (i >= 2) kept += p;
    if (i >= 2) sparse += p * 10 * i;
  }
  const SelectionQuality quality = selection_quality(problem, mask, inputs, 1);
  EXPECT_NEAR(quality.kept_mass, kept / all, 1e-12);
  const double beside = sink ? std::exp(double{*sink}) : 0;
  const double o = full / (all + beside);
  EXPECT_NEAR(quality.error_full, std::abs(sparse / (kept + beside) - o) / o, 1e-12);
}

TEST(SelectionQuality, OfOneRowIsWhatTheSoftmaxSays) {
  for (const float softcap : {0.0F, 0.1F, 2.0F}) {
    for (const std::optional<float> sink : {std::optional<float>{}, {-1.5F}, {3.0F}, {90.0F}}) {
      expect_one_row_right(softcap, sink);
    }
  }
}

/// What the structure is for: chosen blocks of clustered inputs hold far more than their share, and
/// more than random ones.
TEST(SelectionQuality, ChosenBlocksOfClusteredInputsHoldMostOfTheMass) {
  Problem problem = problem_of(4000);
  problem.head_dim = 128;
  const Inputs inputs = make_inputs(problem, 3, InputStyle::clustered);
  MaskSpec spec = spec_of(problem, 0.1, false);
  spec.block = 32;
  const auto mass = [&](const Mask& mask) {
    return selection_quality(problem, mask, inputs, 3).kept_mass;
  };
  const double chosen = mass(selected_mask(spec, problem, inputs.q.view(), inputs.k.view()).mask);
  const double random = mass(generate_mask(spec).mask);
  EXPECT_GT(chosen, 0.7);
  EXPECT_LT(random, 0.3);
}

}  // namespace
}  // namespace longca::testing
