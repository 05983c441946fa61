// A backward call that adds to some rows and heads of dq, as the last step over ranks does.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "gpu/slice/slice_variant.h"
#include "gpu/small_mask.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr int kHeads = 8;

class HeldGradient : public KernelTest, public ::testing::WithParamInterface<SliceVariant> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    if (const auto refusal = GetParam().refusal(); !refusal.empty()) GTEST_SKIP() << refusal;
    kernel_ = make_slice(GetParam().path);
    if (!kernel_->adds_to_dq()) GTEST_SKIP() << "this path adds to no dq of 16 bits";
  }

  /// bfloat16.
  static std::vector<float> values_of(const Tensor& tensor) {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(tensor.bytes()) / 2);
    gpu().copy(bits.data(), tensor.view().data, tensor.bytes());
    std::vector<float> values;
    for (const std::uint16_t x : bits)
      values.push_back(std::bit_cast<float>(std::uint32_t{x} << 16));
    return values;
  }

  /// dq of a call on what `held` says of a dq that the same call has written.
  static std::vector<float> dq_of(longca::Plan& plan, const BackwardArgs& args, const Tensor& dq,
                                  const longca::HeldGradient& held) {
    BackwardArgs again = args;
    again.stream = gpu().stream();
    again.held = held;
    plan.backward(again);
    gpu().synchronize();
    return values_of(dq);
  }

  void expect_added(const Problem& problem, const Mask& mask, const longca::HeldGradient& held) {
    const Inputs inputs = make_inputs(problem, kSeed);
    const Outputs outputs = solve(problem, mask);
    const auto plan = kernel_->plan(problem, mask);
    const BackwardArgs args = backward_args(inputs, outputs);
    const std::vector<float> once = dq_of(*plan, args, outputs.dq, {});
    const std::vector<float> twice = dq_of(*plan, args, outputs.dq, held);
    std::size_t wrong = 0;
    const auto row = static_cast<std::size_t>(problem.heads_q * problem.head_dim);
    for (std::size_t i = 0; i < once.size(); ++i) {
      const auto token = static_cast<std::int64_t>(i / row);
      const auto head = static_cast<std::int64_t>(i % row) / problem.head_dim;
      const bool adds = held.rows.begin <= token && token < held.rows.end &&
                        held.heads.begin <= head && head < held.heads.end;
      const float expected = adds ? 2 * once[i] : once[i];
      // The order of additions differs from call to call.
      wrong += !(std::abs(twice[i] - expected) <= std::abs(expected) / 64 + 2e-3F);
    }
    EXPECT_EQ(wrong, 0U);
  }
};

INSTANTIATE_TEST_SUITE_P(Paths, HeldGradient, ::testing::ValuesIn(slice_variants()), variant_name);

TEST_P(HeldGradient, IsAddedToWhereTheCallSaysSo) {
  for (const std::string name : {"causal", "document", "shared_question", "block_sparse"}) {
    for (const auto& [heads_k, deterministic] : {std::pair{8, false}, {1, false}, {2, true}}) {
      Problem problem = GetParam().of_dims(problem_of(1100, 1100, kHeads, heads_k));
      problem.deterministic = deterministic;
      const Mask mask = small_mask(name, problem.tokens_q, {kHeads, heads_k});
      SCOPED_TRACE(name + " 8:" + std::to_string(heads_k));
      expect_added(problem, mask, {{0, 1100}, {0, kHeads}});
      expect_added(problem, mask, {{0, 1100}, {0, kHeads / 2}});
      expect_added(problem, mask, {{517, 1031}, {3, 7}});
    }
  }
}

/// Rows that see no key keep what is held.
TEST_P(HeldGradient, StaysWhereNoKeyIsSeen) {
  const Problem problem = GetParam().of_dims(problem_of(300, 300, kHeads, 2));
  const Mask mask = Mask::from_slices(300, 300, {{200, 280, 0, 300}});
  const Inputs inputs = make_inputs(problem, kSeed);
  const Outputs outputs = solve(problem, mask);
  const auto plan = kernel_->plan(problem, mask);
  const BackwardArgs args = backward_args(inputs, outputs);
  gpu().copy(outputs.dq.view().data, inputs.q.view().data, outputs.dq.bytes());
  const std::vector<float> before = values_of(outputs.dq);
  const std::vector<float> after = dq_of(*plan, args, outputs.dq, {{0, 300}, {0, kHeads}});
  const auto row = static_cast<std::size_t>(kHeads * problem.head_dim);
  for (std::size_t i = 0; i < 200 * row; ++i) ASSERT_EQ(after[i], before[i]) << i;
  EXPECT_NE(after[250 * row], before[250 * row]);
}

}  // namespace
}  // namespace longca::testing
