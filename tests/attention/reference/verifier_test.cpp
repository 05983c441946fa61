#include "attention/reference/verifier.h"

#include <gtest/gtest.h>

#include <cmath>

#include "attention/reference/faulty_masks.h"
#include "attention/solved.h"
#include "core/error.h"

namespace longca {
namespace {

using test::Outputs;
using test::solve;
using test::square_problem;

TEST(Verify, ErrorsAreRelativeFrobeniusNormsAndTheLargestLseError) {
  const Problem problem = square_problem(100, 2, 1, 16, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = test::small_mask("causal", 100);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  const Outputs outputs = solve(problem, mask, inputs);
  const Verdict exact = check_forward(reference, outputs);
  EXPECT_LT(*exact.error_o, 1e-6);
  EXPECT_LT(*exact.error_lse, 2e-6);

  double squared = 0;
  float* o = outputs.o.view().row<float>(0, 0);
  for (std::int64_t i = 0; i < 100 * 2 * 16; ++i) {
    squared += static_cast<double>(o[i]) * static_cast<double>(o[i]);
  }
  o[5] += 0.5F;
  outputs.lse.view().head(1)[3] += 0.25F;
  const Verdict wrong = check_forward(reference, outputs);
  EXPECT_FALSE(wrong.ok);
  EXPECT_NEAR(*wrong.error_o, 0.5 / std::sqrt(squared), 1e-5);
  EXPECT_NEAR(*wrong.error_lse, 0.25, 1e-5);
}

TEST(Verify, AKernelWithoutLseIsJudgedByItsOutput) {
  const Problem problem = square_problem(100, 2, 1, 16, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = test::small_mask("causal", 100);
  const Reference reference(problem, mask, inputs, {1000, 1}, 1);
  const Outputs outputs = solve(problem, mask, inputs);
  const Verdict verdict = reference.check_forward(outputs.o.view(), nullptr);
  EXPECT_TRUE(verdict.ok);
  EXPECT_FALSE(verdict.error_lse);
}

TEST(Verify, FewerQueriesThanKeysAndMoreAreCompared) {
  for (const auto& [queries, keys] : {std::pair{70, 200}, std::pair{200, 70}}) {
    Problem problem = square_problem(queries, 4, 2, 24, DType::bfloat16);
    problem.tokens_k = keys;
    const Inputs inputs = make_inputs(problem, 1);
    const Mask mask =
        Mask::from_slices(queries, keys, {{0, queries, 0, keys, MaskSliceType::causal}});
    const Reference reference(problem, mask, inputs, {1000, 1}, 1);
    const Outputs outputs = solve(problem, mask, inputs);
    EXPECT_TRUE(check_forward(reference, outputs).ok);
    EXPECT_TRUE(check_backward(reference, outputs, inputs).ok);
  }
}

TEST(Verify, AVOfItsOwnDimensionIsCompared) {
  for (const auto& [dim, value_dim] : {std::pair{24, 16}, std::pair{80, 33}, std::pair{192, 128}}) {
    Problem problem = square_problem(100, 4, 2, dim, DType::bfloat16);
    problem.head_dim_v = value_dim;
    const Inputs inputs = make_inputs(problem, 1);
    EXPECT_EQ(inputs.k.view().dim, dim);
    EXPECT_EQ(inputs.v.view().dim, value_dim);
    EXPECT_EQ(inputs.dout.view().dim, value_dim);
    const Mask mask = test::small_mask("causal", 100);
    const Reference reference(problem, mask, inputs, {1000, 1}, 1);
    const Outputs outputs = solve(problem, mask, inputs);
    const Verdict forward = check_forward(reference, outputs);
    const Verdict backward = check_backward(reference, outputs, inputs);
    EXPECT_TRUE(forward.ok) << forward.reason;
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_EQ(backward.fraction, 1);
    const Outputs square(square_problem(100, 4, 2, dim, DType::bfloat16));
    EXPECT_THROW(reference.check_forward(square.o.view(), nullptr), InternalError);
  }
}

TEST(Verify, AMaskWithoutACellIsCompared) {
  const Problem problem = square_problem(70, 2, 1, 8, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = Mask::from_slices(70, 70, {});
  const Reference reference(problem, mask, inputs, {}, 1);
  const Outputs outputs = solve(problem, mask, inputs);
  EXPECT_TRUE(check_forward(reference, outputs).ok);
  EXPECT_TRUE(check_backward(reference, outputs, inputs).ok);
  outputs.dv.view().row<float>(69, 0)[7] = 1e-10F;
  EXPECT_FALSE(check_backward(reference, outputs, inputs).ok);
}

TEST(Verify, ABackwardCheckMayComeFirst) {
  const Problem problem = square_problem(70, 2, 1, 8, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = test::small_mask("causal", 70);
  const Outputs outputs = solve(problem, mask, inputs);
  EXPECT_TRUE(check_backward(Reference(problem, mask, inputs, {}, 1), outputs, inputs).ok);
}

TEST(Verify, BytesAreTakenAtOnceAndAsEstimated) {
  const Problem problem = square_problem(300, 4, 2, 32, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Mask mask = test::small_mask("causal", 300);
  const VerifyBudget budget{1000, 1};
  const std::int64_t before = MemoryTracker::host().bytes_in_use();
  const Reference reference(problem, mask, inputs, budget, 1);
  const std::int64_t taken = MemoryTracker::host().bytes_in_use() - before;
  EXPECT_GT(taken, 0);
  EXPECT_LE(taken, reference.bytes());
  EXPECT_EQ(reference.bytes(), Reference::estimate_bytes(problem, mask, budget));
  const Outputs outputs = solve(problem, mask, inputs);
  const std::int64_t between = MemoryTracker::host().bytes_in_use();
  check_forward(reference, outputs);
  check_backward(reference, outputs, inputs);
  EXPECT_EQ(MemoryTracker::host().bytes_in_use(), between);
}

TEST(Verify, OutputsOfAnotherShapeAreABug) {
  const Problem problem = square_problem(70, 2, 1, 8, DType::float32);
  const Inputs inputs = make_inputs(problem, 1);
  const Reference reference(problem, test::small_mask("causal", 70), inputs, {}, 1);
  const HostTensor o(DType::float32, 69, 2, 8);
  EXPECT_THROW(reference.check_forward(o.view(), nullptr), InternalError);
}

TEST(Poison, FillsStridedViewsWithNaNAndNothingElse) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const HostTensor tensor(dtype, 3, 4, 5);
    std::fill_n(static_cast<char*>(tensor.view().data), tensor.bytes(), char(0));
    TensorView second = tensor.view();
    second.data = static_cast<char*>(second.data) + second.head_stride * size_of(dtype);
    second.heads = 1;
    poison(second);
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t h = 0; h < 4; ++h) {
        for (std::int64_t c = 0; c < 5; ++c) {
          const float x = with_type_of(
              dtype, [&]<typename T>(T) { return float(tensor.view().row<T>(t, h)[c]); });
          EXPECT_EQ(std::isnan(x), h == 1);
        }
      }
    }
  }
  const HostLse lse(2, 3);
  poison(lse.view());
  EXPECT_TRUE(std::isnan(lse.view().head(1)[2]));
}

}  // namespace
}  // namespace longca
