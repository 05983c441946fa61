// Sinks and softcaps: the reference is attention by its definition in float64, honest kernels keep
// its bounds, and what is wrong in sinks and softcaps alone is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "attention/cpu/dense_attention.h"
#include "attention/reference/faulty_masks.h"
#include "attention/reference/selection.h"
#include "attention/solved.h"

namespace longca {
namespace {

using test::dense_attention;
using test::DenseAttention;
using test::DenseFault;
using test::Outputs;
using test::solve;
using test::square_problem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kTokens = 200;
constexpr float kSinkless = -std::numeric_limits<float>::infinity();

Problem capped_problem(float softcap, bool sink, DType dtype = DType::float32) {
  Problem problem = square_problem(kTokens, 4, 2, 32, dtype);
  problem.softcap = softcap;
  problem.sink = sink;
  return problem;
}

void put(const test::Doubles& from, const TensorView& to) {
  for (std::int64_t t = 0; t < to.tokens; ++t) {
    for (std::int64_t h = 0; h < to.heads; ++h) {
      for (std::int64_t c = 0; c < to.dim; ++c) {
        const auto value = static_cast<float>(from.row(t, h)[c]);
        with_type_of(to.dtype, [&]<typename T>(T) { to.row<T>(t, h)[c] = T(value); });
      }
    }
  }
}

/// Attention by its definition as the outputs of a kernel.
Outputs rounded(const Problem& problem, const DenseAttention& dense) {
  Outputs outputs(problem);
  put(dense.o, outputs.o.view());
  put(dense.dq, outputs.dq.view());
  put(dense.dk, outputs.dk.view());
  put(dense.dv, outputs.dv.view());
  for (int h = 0; h < problem.heads_q; ++h) {
    for (std::int64_t t = 0; t < problem.tokens_q; ++t) {
      outputs.lse.view().head(h)[t] =
          static_cast<float>(dense.lse[static_cast<std::size_t>(h * problem.tokens_q + t)]);
    }
    if (problem.sink) {
      outputs.dsink.view().row<float>(0, h)[0] =
          static_cast<float>(dense.dsink[static_cast<std::size_t>(h)]);
    }
  }
  return outputs;
}

class Sinks : public testing::TestWithParam<std::tuple<DType, InputStyle>> {
 protected:
  DType dtype() const { return std::get<0>(GetParam()); }
  Inputs inputs_of(const Problem& problem, std::uint64_t seed) const {
    return make_inputs(problem, seed, std::get<1>(GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(Inputs, Sinks,
                         testing::Combine(testing::Values(DType::float32, DType::bfloat16,
                                                          DType::float16),
                                          testing::Values(InputStyle::normal, InputStyle::peaked)),
                         [](const auto& instance) {
                           return std::string(to_string(std::get<0>(instance.param))) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

TEST_P(Sinks, TheReferenceIsAttentionByItsDefinition) {
  for (const char* name : {"full", "causal", "sliding_window_causal", "document"}) {
    const Mask mask = test::small_mask(name, kTokens);
    for (const float softcap : {0.0F, 0.5F, 5.0F, 30.0F}) {
      for (const bool sink : {false, true}) {
        SCOPED_TRACE(testing::Message() << name << ", softcap " << softcap << ", sink " << sink);
        const Problem problem = capped_problem(softcap, sink, dtype());
        const Inputs inputs = inputs_of(problem, 1);
        const Reference reference(problem, mask, inputs, {1000, 1}, 1);
        const Outputs outputs = rounded(problem, dense_attention(problem, mask, inputs));
        const Verdict forward = check_forward(reference, outputs);
        const Verdict backward = check_backward(reference, outputs, inputs);
        EXPECT_TRUE(forward.ok) << forward.reason;
        EXPECT_TRUE(backward.ok) << backward.reason;
        EXPECT_LE(forward.worst_ratio, 0.5);
        EXPECT_LE(backward.worst_ratio, 0.5);
        EXPECT_EQ(backward.error_dsink.has_value(), sink);
        EXPECT_LE(backward.error_dsink.value_or(0), 1e-6);
      }
    }
  }
}

TEST_P(Sinks, HonestKernelsPass) {
  for (const char* name : {"full", "causal", "sliding_window_causal"}) {
    const Mask mask = test::small_mask(name, kTokens);
    for (const auto& [softcap, sink] : {std::pair{0.0F, true}, {0.25F, false}, {30.0F, true}}) {
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const Problem problem = capped_problem(softcap, sink, dtype());
        const Inputs inputs = inputs_of(problem, seed);
        const Reference reference(problem, mask, inputs, {1000, 1}, 1);
        for (const auto& kernel : {make_naive_cpu(), make_flash_cpu()}) {
          SCOPED_TRACE(testing::Message() << kernel->capabilities().name << ", " << name
                                          << ", softcap " << softcap << ", seed " << seed);
          const Outputs outputs = solve(*kernel, problem, mask, inputs);
          const Verdict forward = check_forward(reference, outputs);
          const Verdict backward = check_backward(reference, outputs, inputs);
          EXPECT_TRUE(forward.ok && forward.worst_ratio <= 0.6)
              << forward.worst_ratio << forward.reason;
          EXPECT_TRUE(backward.ok && backward.worst_ratio <= 0.6)
              << backward.worst_ratio << backward.reason;
        }
      }
    }
  }
}

/// What the reference says of attention by its definition with a fault.
struct FaultVerdicts {
  Verdict forward, backward;
};
FaultVerdicts judge(const Problem& problem, DenseFault fault) {
  const Mask mask = test::small_mask("causal", kTokens);
  const Inputs inputs = make_inputs(problem, 2);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  const Outputs outputs = rounded(problem, dense_attention(problem, mask, inputs, fault));
  return {check_forward(reference, outputs), check_backward(reference, outputs, inputs)};
}

TEST(SinkFaults, SinkLeftOutOfTheLse) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Verdict forward =
        judge(capped_problem(0, true, dtype), DenseFault::lse_without_sink).forward;
    EXPECT_FALSE(forward.ok);
    EXPECT_THAT(forward.reason, StartsWith("lse "));
    EXPECT_THAT(forward.reason, HasSubstr("LSE off alone, O is right"));
  }
}

TEST(SinkFaults, SlopeOfTheSoftcapLeftOut) {
  for (const auto& [dtype, softcap] : {std::pair{DType::float32, 30.0F}, {DType::bfloat16, 5.0F}}) {
    const auto [forward, backward] =
        judge(capped_problem(softcap, false, dtype), DenseFault::slope_left_out);
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_FALSE(backward.ok);
    EXPECT_THAT(backward.reason, StartsWith("dq "));
  }
}

TEST(SinkFaults, DeltaOfTheKeysAlone) {
  const Verdict backward =
      judge(capped_problem(0, true, DType::bfloat16), DenseFault::sink_sees_no_value).backward;
  EXPECT_FALSE(backward.ok);
  EXPECT_THAT(backward.reason, StartsWith("dq "));
}

/// Budgets for all heads, for some, and for tiles alone.
TEST(SinkFaults, SignAndMissingGradientOfASink) {
  const Mask mask = test::small_mask("causal", kTokens);
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Problem problem = capped_problem(30, true, dtype);
    const Inputs inputs = make_inputs(problem, 3);
    for (const double seconds : {1000.0, 0.05, 1e-9}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << ", " << seconds << " s");
      const Reference reference(problem, mask, inputs, {seconds, 1}, 1);
      const Outputs outputs = solve(problem, mask, inputs);
      const Verdict right = check_backward(reference, outputs, inputs);
      EXPECT_TRUE(right.ok) << right.reason;
      EXPECT_TRUE(right.error_dsink.has_value());
      float* dsink = outputs.dsink.view().row<float>(0, reference.checked_heads().q.front().begin);
      const float value = dsink[0];
      for (const float wrong : {-value, 0.0F, std::numeric_limits<float>::quiet_NaN(), kSinkless}) {
        dsink[0] = wrong;
        const Verdict verdict = check_backward(reference, outputs, inputs);
        EXPECT_FALSE(verdict.ok) << wrong;
        EXPECT_THAT(verdict.reason, StartsWith("dsink is "));
      }
    }
  }
}

TEST(SinkFaults, AnotherSinkOrSoftcap) {
  const Mask mask = test::small_mask("full", kTokens);
  const Problem problem = capped_problem(30, true, DType::bfloat16);
  const Inputs inputs = make_inputs(problem, 4);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  for (const Problem& other :
       {capped_problem(25, true, DType::bfloat16), capped_problem(0, true, DType::bfloat16)}) {
    EXPECT_THAT(check_forward(reference, solve(other, mask, inputs)).reason, StartsWith("lse "));
  }
  Inputs moved = make_inputs(problem, 4);
  moved.sink.view().row<float>(0, 1)[0] += 0.125F;
  const Verdict verdict = check_forward(reference, solve(problem, mask, moved));
  EXPECT_THAT(verdict.reason, HasSubstr("at head 1"));
}

TEST(SinkRows, WithoutKeysHaveTheSinkAsLse) {
  Problem problem = capped_problem(0, true);
  // Of the upper half of the rows, none has a key.
  const Mask mask = Mask::from_slices(kTokens, kTokens,
                                      {{kTokens / 2, kTokens, 0, kTokens, MaskSliceType::full}});
  const Inputs inputs = make_inputs(problem, 5);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  for (const auto& kernel : {make_naive_cpu(), make_flash_cpu()}) {
    SCOPED_TRACE(kernel->capabilities().name);
    Outputs outputs = solve(*kernel, problem, mask, inputs);
    EXPECT_TRUE(check_forward(reference, outputs).ok);
    EXPECT_TRUE(check_backward(reference, outputs, inputs).ok);
    for (int h = 0; h < problem.heads_q; ++h) {
      EXPECT_FLOAT_EQ(outputs.lse.view().head(h)[0], inputs.sink_logits()[h]);
      EXPECT_EQ(outputs.o.view().row<float>(0, h)[3], 0.0F);
    }
    outputs.o.view().row<float>(1, 2)[5] = 1e-30F;
    EXPECT_THAT(check_forward(reference, outputs).reason, HasSubstr("must be exactly 0"));
  }
}

TEST(SinkRows, WithoutKeysHaveNothingOfASinkOfMinusInfinity) {
  const Problem problem = capped_problem(0, true);
  const Mask mask = Mask::from_slices(kTokens, kTokens,
                                      {{kTokens / 2, kTokens, 0, kTokens, MaskSliceType::full}});
  const Inputs inputs = make_inputs(problem, 5);
  inputs.sink.view().row<float>(0, 1)[0] = kSinkless;
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  for (const auto& kernel : {make_naive_cpu(), make_flash_cpu()}) {
    SCOPED_TRACE(kernel->capabilities().name);
    const Outputs outputs = solve(*kernel, problem, mask, inputs);
    const Verdict forward = check_forward(reference, outputs);
    const Verdict backward = check_backward(reference, outputs, inputs);
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_EQ(outputs.lse.view().head(1)[0], kSinkless);
    EXPECT_EQ(outputs.o.view().row<float>(0, 1)[3], 0.0F);
    EXPECT_EQ(outputs.dsink.view().row<float>(0, 1)[0], 0.0F);
  }
}

}  // namespace
}  // namespace longca
