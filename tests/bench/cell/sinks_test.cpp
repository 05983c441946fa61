// The gradient of sinks among a cell's outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "bench/cell/problem.h"
#include "bench/cell/tensors.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

struct SinkOutputs {
  Problem problem{.tokens_q = 8,
                  .tokens_k = 8,
                  .heads_q = 4,
                  .heads_k = 2,
                  .head_dim = 16,
                  .backward = true,
                  .sink = true};
  Inputs inputs = make_inputs(problem, 7);
  Outputs outputs = Outputs::for_problem(problem);

  float* dsink() const { return static_cast<float*>(outputs.dsink.view().data); }
  std::uint64_t hash(Pass pass) const {
    return hash_results(*outputs.device, outputs.with(inputs), pass);
  }
};

TEST(SinkOutputs, ArePoisonedFilledAndHashedWithTheGradients) {
  const SinkOutputs x;
  EXPECT_EQ(x.outputs.backward_args(x.inputs).dsink, x.dsink());
  EXPECT_EQ(x.outputs.backward_args(x.inputs).sink, x.inputs.sink_logits());
  EXPECT_EQ(x.outputs.forward_args(x.inputs).sink, x.inputs.sink_logits());
  fill_results(*x.outputs.device, x.outputs.with(x.inputs), Pass::backward, 0);
  fill_results(*x.outputs.device, x.outputs.with(x.inputs), Pass::forward, 0);
  for (int head = 0; head < 4; ++head) EXPECT_EQ(x.dsink()[head], 0.0F);
  const std::uint64_t forward = x.hash(Pass::forward);
  for (const Pass pass : {Pass::backward, Pass::step}) {
    const std::uint64_t before = x.hash(pass);
    x.dsink()[3] = 1;
    EXPECT_NE(x.hash(pass), before);
    x.dsink()[3] = 0;
    EXPECT_EQ(x.hash(pass), before);
  }
  x.outputs.poison_backward();
  for (int head = 0; head < 4; ++head) EXPECT_TRUE(std::isnan(x.dsink()[head]));
  EXPECT_EQ(x.hash(Pass::forward), forward);
}

TEST(SinkOutputs, HaveMarginsThatNobodyWrites) {
  const SinkOutputs x;
  EXPECT_EQ(x.outputs.written_margin(), "");
  x.dsink()[4] = 1;
  EXPECT_THAT(x.outputs.written_margin(), HasSubstr("behind dsink"));
}

TEST(SinkInputs, AreNormalAndPartOfTheFingerprint) {
  SinkOutputs x;
  EXPECT_EQ(x.inputs.sink.view().heads, 4);
  const std::uint64_t before = fingerprint(x.inputs, *x.outputs.device);
  x.inputs.sink.view().row<float>(0, 2)[0] += 1;
  EXPECT_NE(fingerprint(x.inputs, *x.outputs.device), before);
  Problem wide = x.problem;
  wide.heads_q = 4096;
  const Inputs many = make_inputs(wide, 7);
  double sum = 0;
  double squares = 0;
  for (int head = 0; head < 4096; ++head) {
    const auto value = static_cast<double>(many.sink_logits()[head]);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 4096, 0, 0.06);
  EXPECT_NEAR(squares / 4096, 1, 0.1);
  x.problem.sink = false;
  EXPECT_EQ(make_inputs(x.problem, 7).sink_logits(), nullptr);
}

}  // namespace
}  // namespace longca::testing
