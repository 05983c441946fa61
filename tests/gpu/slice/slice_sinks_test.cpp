// slice with a learned logit in the softmax's denominator and with capped scores.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/slice/slice.h"
#include "gpu/adapters/expect_right.h"
#include "gpu/gpu_test.h"
#include "gpu/slice/slice_variant.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

class SliceSinks : public GpuTest, public ::testing::WithParamInterface<SliceVariant> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (const auto refusal = GetParam().refusal(); !refusal.empty()) GTEST_SKIP() << refusal;
    kernel_ = make_slice(GetParam().path);
  }

  Problem gpu_problem(std::int64_t tokens, int heads_q, int heads_k) const {
    return GetParam().of_dims(testing::gpu_problem(tokens, heads_q, heads_k));
  }
  /// No instances for heads of two dimensions have a softcap.
  bool caps() const { return GetParam().dims.head_dim == GetParam().dims.value_dim; }

  void expect_refused(
      const Problem& problem,
      const std::string& reason = "slice has no softcap for head dimensions 192:128") const {
    const Support support = kernel_->supports(problem, small_mask("causal", problem));
    EXPECT_EQ(support.code, StatusCode::unsupported);
    EXPECT_EQ(support.reason, reason);
  }

  void expect_right_with(std::int64_t tokens, bool sink, float softcap, const std::string& mask) {
    SCOPED_TRACE(mask + " of " + std::to_string(tokens) + ", sink " + std::to_string(sink) +
                 ", softcap " + std::to_string(softcap));
    Problem problem = gpu_problem(tokens, 8, 2);
    problem.sink = sink;
    problem.softcap = softcap;
    if (softcap > 0 && !caps()) return expect_refused(problem);
    expect_right(*kernel_, problem, small_mask(mask, problem));
  }

  /// Both passes, with a softcap, of inputs in one document. They are too long for expect_right to
  /// hold them to the CPU's reference, whose inputs would be normal ones.
  void expect_right_of(InputStyle style, float softcap, const std::string& name) {
    constexpr std::int64_t kTokens = 2500;
    SCOPED_TRACE(name + ", softcap " + std::to_string(softcap) + ", " +
                 std::string(to_string(style)));
    Problem problem = gpu_problem(kTokens, 8, 2);
    problem.softcap = softcap;
    const Mask mask = small_mask(name, problem);
    if (!caps()) return expect_refused(problem);
    const Inputs inputs = make_inputs(problem, kInputSeed, style, {{kTokens}});
    const Outputs outputs = Outputs::for_problem(problem);
    outputs.poison_forward();
    outputs.poison_backward();
    const auto plan = kernel_->plan(problem, mask);
    plan->forward(outputs.forward_args(inputs));
    plan->backward(outputs.backward_args(inputs));
    gpu().synchronize();
    expect_right(problem, mask, inputs, outputs);
  }

  std::unique_ptr<Kernel> kernel_;
};

INSTANTIATE_TEST_SUITE_P(Paths, SliceSinks, ::testing::ValuesIn(slice_variants()), variant_name);

TEST_P(SliceSinks, EveryMaskWithSinksAndWithScoresNearAndFarFromTheCap) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 65, 300}) {
      expect_right_with(tokens, true, 0, traits.name);
      expect_right_with(tokens, false, 30, traits.name);
      expect_right_with(tokens, true, 0.5F, traits.name);
    }
  }
}

/// Beyond what the CPU's reference is asked for: held to the GPU's.
TEST_P(SliceSinks, LongRows) {
  for (const std::string mask : {"causal", "causal_document", "block_sparse"}) {
    expect_right_with(2500, true, 0, mask);
    expect_right_with(2500, false, 50, mask);
    expect_right_with(2500, true, 2, mask);
  }
}

/// Scores of up to 400 under a cap of 20: nearly all at the cap, where slopes are near 0.
TEST_P(SliceSinks, ScoresFarBeyondTheCap) {
  Problem problem = gpu_problem(300, 4, 4);
  problem.softmax_scale = 8;
  problem.softcap = 20;
  problem.sink = true;
  if (!caps()) return expect_refused(problem);
  expect_right(*kernel_, problem, small_mask("causal", problem));
}

/// Scores that rise along the keys, by 32: their first tiles are far below the caps, later ones are
/// not, so that tiles of a row take different formulas. And peaked ones: rows that see few keys
/// have scores near either end of the cap alone. For caps on both sides of those up to which the
/// row max of full tiles is that of the first tile.
TEST_P(SliceSinks, ScoresThatComeNearTheCap) {
  for (const InputStyle style : {InputStyle::rising, InputStyle::peaked}) {
    for (const float softcap : {40.0F, 50.0F, 65.0F, 100.0F}) {
      for (const std::string name : {"full", "causal", "causal_document"}) {
        expect_right_of(style, softcap, name);
      }
    }
  }
}

/// Peaked scores, under caps of which the last terms of polynomials vanish in float32.
TEST_P(SliceSinks, CapsFarAboveTheScores) {
  for (const float softcap : {1e3F, 1e5F, 1e6F}) {
    expect_right_of(InputStyle::peaked, softcap, "full");
  }
}

/// Caps that turn scores into signs: slopes hang on the last bits of a score, and terms of a row's
/// sum are alike. Documents have rows that see nothing in the first tile of their work.
TEST_P(SliceSinks, CapsFarBelowTheScores) {
  for (const InputStyle style : {InputStyle::normal, InputStyle::peaked}) {
    for (const float softcap : {0.5F, 1.0F}) expect_right_of(style, softcap, "causal_document");
    if (GetParam().path == SlicePath::sm80) continue;
    for (const float softcap : {1e-3F, 1e-2F}) expect_right_of(style, softcap, "causal_document");
  }
}

TEST_P(SliceSinks, RefusesBackwardTheCapsWhoseSlopesMmaWouldLose) {
  if (GetParam().path != SlicePath::sm80) GTEST_SKIP() << "wgmma's have their own";
  Problem problem = gpu_problem(300, 8, 2);
  problem.softcap = 0.25F;
  expect_refused(problem,
                 "slice has softcap 0.25, less than 0.5, backward on GPUs of compute capability "
                 "9.0 only");
  problem.backward = false;
  EXPECT_TRUE(kernel_->supports(problem, small_mask("causal", problem)).ok());
}

/// Of calls over parts of the keys, one takes the sinks. The first rows see no key in any part.
TEST_P(SliceSinks, CountOnceInCallsThatMerge) {
  constexpr std::int64_t kTokens = 300;
  Problem problem = gpu_problem(kTokens, 8, 1);
  problem.backward = false;
  problem.sink = true;
  const Inputs inputs = make_inputs(problem, kInputSeed);
  const Outputs outputs = Outputs::for_problem(problem);
  const MaskSlice slices[] = {{30, kTokens, 0, 130, MaskSliceType::full},
                              {100, kTokens, 130, kTokens, MaskSliceType::full}};
  const Tensor sums(gpu().memory(), DType::float32, kTokens, problem.heads_q, problem.value_dim());
  gpu().fill(sums.view().data, 0xff, sums.bytes());  // LSE says that there is nothing
  const std::vector<float> nothing(static_cast<std::size_t>(kTokens * problem.heads_q),
                                   -std::numeric_limits<float>::infinity());
  gpu().copy(outputs.lse.view().data, nothing.data(), outputs.lse.bytes());
  Problem merging = problem;
  merging.accumulate = true;
  for (int part = 0; part < 2; ++part) {
    const Mask mask = Mask::from_slices(kTokens, kTokens, {slices[part]});
    ASSERT_EQ(kernel_->supports(merging, mask).reason, "");
    ForwardArgs args = outputs.forward_args(inputs);
    args.o = sums.view();
    args.accumulate = true;
    if (part == 0) args.sink = nullptr;
    kernel_->plan(merging, mask)->forward(args);
  }
  gpu().synchronize();
  std::vector<float> merged(
      static_cast<std::size_t>(kTokens * problem.heads_q * problem.value_dim()));
  gpu().copy(merged.data(), sums.view().data, sums.bytes());
  const std::vector<BFloat16> rounded(merged.begin(), merged.end());
  gpu().copy(outputs.o.view().data, rounded.data(), outputs.o.bytes());
  expect_right(problem, Mask::from_slices(kTokens, kTokens, {slices[0], slices[1]}), inputs,
               outputs);
}

/// dsink is added to in a call that accumulates, and is the same to the bit from call to call.
TEST_P(SliceSinks, GradientsOfSinksAddUpInAFixedOrder) {
  Problem problem = gpu_problem(700, 8, 2);
  problem.sink = true;
  const Mask mask = small_mask("causal_document", problem);
  const Inputs inputs = make_inputs(problem, kInputSeed);
  const Outputs outputs = Outputs::for_problem(problem);
  const auto plan = kernel_->plan(problem, mask);
  plan->forward(outputs.forward_args(inputs));
  const auto gradients = [&] {
    std::vector<float> values(static_cast<std::size_t>(problem.heads_q));
    gpu().synchronize();
    gpu().copy(values.data(), outputs.dsink.view().data, outputs.dsink.bytes());
    return values;
  };
  plan->backward(outputs.backward_args(inputs));
  const std::vector<float> once = gradients();
  plan->backward(outputs.backward_args(inputs));
  EXPECT_EQ(gradients(), once);

  Problem adding = problem;
  adding.accumulate = true;
  const auto sums = [&](std::int64_t tokens, int heads, int dim) {
    Tensor tensor(gpu().memory(), DType::float32, tokens, heads, dim);
    gpu().fill(tensor.view().data, 0, tensor.bytes());
    return tensor;
  };
  const Tensor dq = sums(700, 8, problem.head_dim);
  const Tensor dk = sums(700, 2, problem.head_dim);
  const Tensor dv = sums(700, 2, problem.value_dim());
  BackwardArgs args = outputs.backward_args(inputs);
  args.dq = dq.view();
  args.dk = dk.view();
  args.dv = dv.view();
  args.accumulate = true;
  kernel_->plan(adding, mask)->backward(args);
  const std::vector<float> twice = gradients();
  for (std::size_t head = 0; head < once.size(); ++head) {
    EXPECT_NEAR(twice[head], 2 * once[head], 1e-5 * std::abs(once[head])) << "head " << head;
  }
}

}  // namespace
}  // namespace longca::testing
