// On inputs of every style right results pass and wrong ones are found, with the bounds that hold
// for normal inputs: they scale with scores, sums and the error of the same precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "attention/api/registry.h"
#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"
#include "mask/generators.h"

namespace longca::input_styles_test {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;
using testing::StartsWith;

std::vector<std::string> styles() {
  const auto names = input_style_names();
  return {names.begin(), names.end()};
}

GeneratedMask generated_mask(const std::string& name, const Problem& problem) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = problem.tokens_q;
  spec.lengths = "pile";
  spec.window = 37;
  spec.block_tokens = 96;
  spec.block = 64;
  spec.heads_q = problem.heads_q;
  spec.heads_k = problem.heads_k;
  return generate_mask(spec);
}

/// A style and a dtype.
class InputsOfAStyle : public testing::TestWithParam<std::tuple<std::string, DType>> {
 protected:
  InputStyle style() const { return parse_input_style(std::get<0>(GetParam())).value(); }
  Problem problem(std::int64_t tokens, int heads_q, int heads_k, int head_dim) const {
    return square_problem(tokens, heads_q, heads_k, head_dim, std::get<1>(GetParam()));
  }

  /// Every CPU kernel over every mask, with a tenth of every bound to spare.
  void expect_right_kernels_pass(const Problem& p) const {
    for (const MaskTraits& traits : mask_table()) {
      const GeneratedMask generated = generated_mask(traits.name, p);
      const Inputs inputs = make_inputs(p, 5, style(), generated.lengths);
      const Reference reference(p, generated.mask, inputs, {1000, 1}, 1);
      for (const auto& kernel : KernelRegistry::global().kernels()) {
        if (!kernel->supports(p, generated.mask).ok()) continue;
        SCOPED_TRACE(kernel->capabilities().name + ", " + traits.name);
        const Outputs outputs = solve(*kernel, p, generated.mask, inputs);
        expect_room(check_forward(reference, outputs), "forward");
        expect_room(check_backward(reference, outputs, inputs), "backward");
      }
    }
  }

  /// What a kernel that takes `wrong` for the mask returns is called wrong, in either pass.
  void expect_found(const Problem& p, const Mask& mask, const Mask& wrong) const {
    const Inputs inputs = make_inputs(p, 1, style());
    const Reference reference(p, mask, inputs, {1000, 1}, 1);
    EXPECT_THAT(check_forward(reference, solve(p, wrong, inputs)).reason, StartsWith("lse "));
    const Outputs mixed = solve(p, mask, inputs);
    EXPECT_TRUE(check_forward(reference, mixed).ok);
    make_naive_cpu()->plan(p, wrong)->backward(mixed.backward_args(inputs));
    EXPECT_FALSE(check_backward(reference, mixed, inputs).ok);
  }

 private:
  static void expect_room(const Verdict& verdict, const char* pass) {
    EXPECT_TRUE(verdict.ok) << pass << ": " << verdict.reason;
    EXPECT_LE(verdict.worst_ratio, 0.9) << pass;
    EXPECT_EQ(verdict.fraction, 1);
  }
};

TEST_P(InputsOfAStyle, RightKernelsPassAtOneAndAt65Tokens) {
  for (const std::int64_t tokens : {1, 65}) {
    expect_right_kernels_pass(problem(tokens, 8, 2, 128));
    expect_right_kernels_pass(problem(tokens, 4, 4, 40));
  }
}

TEST_P(InputsOfAStyle, RightKernelsPassAtAThousandTokens) {
  expect_right_kernels_pass(problem(1000, 2, 1, 40));
  expect_right_kernels_pass(problem(1000, 1, 1, 32));
}

TEST_P(InputsOfAStyle, ADiagonalOffByOneIsFound) {
  for (const std::int64_t tokens : {65, 200}) {
    const Problem p = problem(tokens, 4, 2, 64);
    const Mask causal = test::small_mask("causal", tokens);
    expect_found(p, causal, test::shifted_causal(tokens, -1));
    expect_found(p, causal, test::shifted_causal(tokens, 1));
  }
}

TEST_P(InputsOfAStyle, AScaleOffByOneInAThousandIsFound) {
  for (const char* name : {"full", "causal", "causal_document"}) {
    Problem p = problem(200, 4, 2, 64);
    const GeneratedMask generated = generated_mask(name, p);
    const Inputs inputs = make_inputs(p, 1, style(), generated.lengths);
    const Reference reference(p, generated.mask, inputs, {1000, 1}, 1);
    p.softmax_scale = p.scale() * 1.001F;
    EXPECT_THAT(check_forward(reference, solve(p, generated.mask, inputs)).reason,
                StartsWith("lse "));
  }
}

/// The first key; of rising inputs, where it has e⁻³² of the probability, the last.
TEST_P(InputsOfAStyle, ADroppedKeyIsFound) {
  const Problem p = problem(200, 4, 2, 64);
  const std::int64_t first = style() == InputStyle::rising ? 0 : 1;
  expect_found(p, test::small_mask("full", 200),
               Mask::from_slices(200, 200, {{0, 200, first, 199 + first, MaskSliceType::full}}));
}

INSTANTIATE_TEST_SUITE_P(Styles, InputsOfAStyle,
                         testing::Combine(testing::ValuesIn(styles()),
                                          testing::Values(DType::float32, DType::bfloat16,
                                                          DType::float16)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  std::string(to_string(std::get<1>(instance.param)));
                         });

}  // namespace
}  // namespace longca::input_styles_test
