// Gradients of keys in float32 beside a dQ of the problem's dtype, as steps over ranks want them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/kernels/slice/slice.h"
#include "gpu/kernel_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kTokens = 1100;  // the last tile is cut
constexpr int kHeadsQ = 4;

class KeySums : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    kernel_ = make_slice();
    if (!kernel_->sums_key_gradients()) {
      GTEST_SKIP() << "slice sums no keys on the " << gpu().properties().name;
    }
  }

  static Mask small_mask(const std::string& name) {
    MaskSpec spec;
    spec.name = name;
    spec.tokens = kTokens;
    spec.lengths = "pile";
    return generate_mask(spec).mask;
  }

  /// float32 in which all elements are `value`.
  Tensor filled(float value) {
    Tensor tensor(gpu().memory(), DType::float32, kTokens, 1, 128);
    const std::vector<float> values(static_cast<std::size_t>(tensor.bytes()) / 4, value);
    gpu().copy(tensor.view().data, values.data(), tensor.bytes());
    return tensor;
  }

  /// How many elements of `sum`, of float32, are not those of `rounded` and `more`.
  std::size_t far_from(const Tensor& sum, const Tensor& rounded, float more) {
    const auto count = static_cast<std::size_t>(sum.bytes()) / sizeof(float);
    std::vector<float> got(count);
    std::vector<std::uint16_t> expected(count);
    gpu().copy(got.data(), sum.view().data, sum.bytes());
    gpu().copy(expected.data(), rounded.view().data, rounded.bytes());
    std::size_t far = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = std::bit_cast<float>(std::uint32_t{expected[i]} << 16);
      far += !(std::abs(got[i] - more - value) <= std::abs(value) / 200 + 1e-4F);
    }
    return far;
  }
};

/// Keys of CTAs of their own, and keys that several share.
TEST_F(KeySums, AreWhatThePlainCallRounds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string name : {"causal", "shared_question"}) {
    const Problem problem = problem_of(kTokens, kTokens, kHeadsQ, 1);
    const Mask mask = small_mask(name);
    const Inputs inputs = make_inputs(problem, kSeed);
    const Outputs plain = solve(problem, mask);
    const Outputs again = solve(problem, mask);  // for O and LSE
    const auto verifier = make_verifier(problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const auto plan = kernel_->plan(problem, mask);
    ASSERT_GT(plan->keep_rows(1 << 30), 0);
    for (const auto& [adds, prepared] :
         {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
      SCOPED_TRACE(name + (adds ? ", added" : ", overwritten") + (prepared ? ", prepared" : ""));
      const float before = adds ? 1 : nan;
      const Tensor dk = filled(before);
      const Tensor dv = filled(before);
      gpu().fill(again.dq.view().data, 0xff, again.dq.bytes());
      BackwardArgs args = backward_args(inputs, again);
      args.dk = dk.view();
      args.dv = dv.view();
      args.stream = gpu().stream();
      args.key_gradients = adds ? KeyGradients::add_float32 : KeyGradients::overwrite_float32;
      if (prepared) plan->prepare_rows(args);
      plan->backward(args);
      gpu().synchronize();
      EXPECT_EQ(far_from(dk, plain.dk, adds ? 1 : 0), 0U);
      EXPECT_EQ(far_from(dv, plain.dv, adds ? 1 : 0), 0U);
      BackwardArgs rounded = backward_args(inputs, again);
      rounded.dk = plain.dk.view();
      rounded.dv = plain.dv.view();
      const Verdict verdict = verifier->check_backward(rounded);
      EXPECT_TRUE(verdict.ok) << verdict.reason;
    }
  }
}

}  // namespace
}  // namespace longca::testing
