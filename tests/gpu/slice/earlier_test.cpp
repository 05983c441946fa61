// A forward call that merges the result over other keys, as the last step over ranks does.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "gpu/small_mask.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

/// Rows `rows` of a tensor of 16-bit elements.
ConstTensorView rows_of(ConstTensorView tensor, Range rows) {
  tensor.data = static_cast<const std::byte*>(tensor.data) + rows.begin * tensor.token_stride * 2;
  tensor.tokens = rows.size();
  return tensor;
}

class Earlier : public KernelTest, public ::testing::WithParamInterface<std::pair<int, DType>> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    kernel_ = make_slice();
    const Problem problem = own_problem(1, 1);
    if (const Support said = kernel_->supports(problem, Mask::from_slices(1, 1, {})); !said.ok()) {
      GTEST_SKIP() << said.reason;
    }
    if (!kernel_->merges_earlier(problem)) {
      GTEST_SKIP() << "slice merges no earlier results on the " << gpu().properties().name;
    }
  }

  static Problem own_problem(std::int64_t tokens, int heads_k) {
    Problem problem = problem_of(tokens, tokens, 8, heads_k);
    std::tie(problem.head_dim, problem.dtype) = GetParam();
    problem.backward = false;
    return problem;
  }

  /// The keys before `cut`, then those from it on, merged by the kernel: where the first result
  /// lies, or beside it.
  void expect_right_in_two(const Problem& problem, const Mask& mask, std::int64_t cut,
                           bool in_place) {
    const Inputs inputs = make_inputs(problem, kSeed);
    const Outputs first(problem);
    const Outputs second(problem);
    const Outputs& result = in_place ? first : second;
    const std::vector<Range> rows = {{0, problem.tokens_q}};
    for (const Range keys : {Range{0, cut}, Range{cut, problem.tokens_k}}) {
      Problem part = problem;
      part.tokens_k = keys.size();
      const std::vector<Range> of_part = {keys};
      const Mask sub_mask = mask.sub_mask(rows, of_part);
      const auto plan = kernel_->plan(part, sub_mask);
      ForwardArgs args;
      args.q = inputs.q.view();
      args.k = rows_of(inputs.k.view(), keys);
      args.v = rows_of(inputs.v.view(), keys);
      const bool is_first = keys.begin == 0;
      args.o = is_first ? first.o.view() : result.o.view();
      args.lse = is_first ? first.lse.view() : result.lse.view();
      args.sink = is_first ? inputs.sink_logits() : nullptr;
      if (!is_first) args.earlier = {first.o.view(), first.lse.view()};
      args.stream = gpu().stream();
      plan->forward(args);
    }
    gpu().synchronize();
    const auto verifier = make_verifier(problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const ConstLseView lse(result.lse.view());
    const Verdict verdict = verifier->check_forward(result.o.view(), &lse);
    EXPECT_TRUE(verdict.ok) << verdict.reason;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Dims, Earlier,
    ::testing::Values(std::pair{80, DType::bfloat16}, std::pair{128, DType::bfloat16},
                      std::pair{96, DType::float16}, std::pair{128, DType::float16}),
    [](const auto& info) {
      return std::string(to_string(info.param.second)) + "_" + std::to_string(info.param.first);
    });

/// With clusters of CTAs (8:2 heads) and without them.
TEST_P(Earlier, EveryMaskInTwoCallsIsRight) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {65, 300, 1100}) {
      for (const int heads_k : {2, 8}) {
        for (const bool in_place : {true, false}) {
          SCOPED_TRACE(traits.name + " of " + std::to_string(tokens) +
                       ", 8:" + std::to_string(heads_k) + (in_place ? ", in place" : ""));
          const Problem problem = own_problem(tokens, heads_k);
          expect_right_in_two(problem, small_mask(traits.name, tokens, {8, heads_k}), tokens / 3,
                              in_place);
        }
      }
    }
  }
}

/// Row maxima move in full tiles, whose probabilities are computed again.
TEST_P(Earlier, LargeScores) {
  for (const int heads_k : {1, 8}) {
    for (const std::string name : {"full", "causal", "document"}) {
      for (const bool in_place : {true, false}) {
        SCOPED_TRACE(name + ", 8:" + std::to_string(heads_k) + (in_place ? ", in place" : ""));
        Problem problem = own_problem(3000, heads_k);
        problem.softmax_scale = 8;
        expect_right_in_two(problem, small_mask(name, 3000, {8, heads_k}), 1300, in_place);
      }
    }
  }
}

/// A sink counts in the first call alone; rows that no key sees have nothing but it.
TEST_P(Earlier, WithSinks) {
  for (const std::string name : {"causal", "shared_question", "block_sparse"}) {
    Problem problem = own_problem(700, 2);
    problem.sink = true;
    SCOPED_TRACE(name);
    expect_right_in_two(problem, small_mask(name, 700, {8, 2}), 256, true);
  }
}

TEST_P(Earlier, RowsThatSeeNoKeyInEitherCallAreZeros) {
  const Problem problem = own_problem(300, 8);
  const Mask mask = Mask::from_slices(300, 300, {{40, 60, 0, 300}, {200, 280, 150, 300}});
  expect_right_in_two(problem, mask, 100, true);
}

}  // namespace
}  // namespace longca::testing
