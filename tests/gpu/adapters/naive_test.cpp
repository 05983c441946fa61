#include <gmock/gmock.h>

#include <random>

#include "attention/adapters/cublas/naive_cuda.h"
#include "attention/cpu/random_problem.h"
#include "core/memory.h"
#include "gpu/adapters/expect_right.h"
#include "gpu/gpu_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

class NaiveCuda : public GpuTest {
 protected:
  const std::unique_ptr<Kernel> kernel_ = make_naive_cuda();
};

TEST_F(NaiveCuda, EveryMaskInEveryDtype) {
  for (const MaskTraits& mask : mask_table()) {
    for (const DType dtype : {DType::bfloat16, DType::float32}) {
      SCOPED_TRACE(mask.name + " " + std::string(to_string(dtype)));
      Problem problem = gpu_problem(700, 4, 2);
      problem.dtype = dtype;
      expect_right(*kernel_, problem, small_mask(mask.name, problem));
    }
  }
}

TEST_F(NaiveCuda, RandomShapesAndMasks) {
  std::mt19937 random(3);
  for (int draw = 0; draw < 60; ++draw) {
    Problem problem = test::random_problem(draw % 2 ? DType::bfloat16 : DType::float32, random);
    problem.device = DeviceKind::cuda;
    const Mask mask = test::random_mask(problem.tokens_q, problem.tokens_k, problem.heads_q,
                                        problem.heads_k, random);
    SCOPED_TRACE(draw);
    expect_right(*kernel_, problem, mask);
  }
}

TEST_F(NaiveCuda, LongRowsOfManyHeads) {
  const Problem problem = gpu_problem(4096, 16, 2);
  for (const char* name : {"causal", "global_sliding_window", "block_sparse"}) {
    SCOPED_TRACE(name);
    expect_right(*kernel_, problem, small_mask(name, problem));
  }
}

/// The keys in two parts, each a call of its own: what a ring step does.
TEST_F(NaiveCuda, AccumulatesIntoTheWholeSoftmax) {
  constexpr std::int64_t kTokens = 300;
  constexpr std::int64_t kSplit = 130;
  Problem problem = gpu_problem(kTokens, 4, 2);
  problem.dtype = DType::float32;
  const Inputs inputs = make_inputs(problem, kInputSeed);
  const Outputs outputs = Outputs::for_problem(problem);
  const auto part = [](std::vector<MaskSlice> slices) {
    return Mask::from_slices(kTokens, kTokens, std::move(slices));
  };
  const Mask parts[] = {part({{kSplit, kTokens, kSplit, kTokens, MaskSliceType::causal}}),
                        part({{0, kSplit, 0, kSplit, MaskSliceType::causal},
                              {kSplit, kTokens, 0, kSplit, MaskSliceType::full}})};
  const std::vector<float> nothing_seen(4 * kTokens, -std::numeric_limits<float>::infinity());
  outputs.poison_forward();
  gpu().copy(outputs.lse.view().data, nothing_seen.data(), outputs.lse.bytes());
  for (const OutputTensor* gradient : {&outputs.dq, &outputs.dk, &outputs.dv}) {
    gpu().fill(gradient->view().data, 0, gradient->bytes());
  }
  problem.accumulate = true;
  for (const Mask& mask : parts) {
    ForwardArgs args = outputs.forward_args(inputs);
    args.accumulate = true;
    kernel_->plan(problem, mask)->forward(args);
  }
  for (const Mask& mask : parts) {
    BackwardArgs args = outputs.backward_args(inputs);
    args.accumulate = true;
    kernel_->plan(problem, mask)->backward(args);
  }
  gpu().synchronize();
  problem.accumulate = false;
  expect_right(problem, part({{0, kTokens, 0, kTokens, MaskSliceType::causal}}), inputs, outputs);
}

TEST_F(NaiveCuda, ScoresThatDoNotFitAreRefusedWithTheirSize) {
  const Problem problem = gpu_problem(131072, 64, 8);
  const std::int64_t before = gpu().memory().bytes_in_use();
  try {
    kernel_->plan(problem, small_mask("causal", problem));
    FAIL() << "8.8 TB were found";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("8796.1 GB of scores and their gradients"));
  }
  EXPECT_EQ(gpu().memory().bytes_in_use(), before);
}

/// Within what the device has, beyond what the case may take.
TEST_F(NaiveCuda, ScoresBeyondTheLimitAreRefusedByTheTracker) {
  const Problem problem = gpu_problem(4096, 16, 2);
  const std::int64_t before = gpu().memory().bytes_in_use();
  gpu().memory().set_limit(before + (std::int64_t{1} << 30));
  EXPECT_THROW(kernel_->plan(problem, small_mask("causal", problem)), OutOfMemory);
  gpu().memory().set_limit(0);
  EXPECT_EQ(gpu().memory().bytes_in_use(), before);
  expect_right(*kernel_, gpu_problem(256, 4, 2), small_mask("causal", gpu_problem(256, 4, 2)));
}

}  // namespace
}  // namespace longca::testing
