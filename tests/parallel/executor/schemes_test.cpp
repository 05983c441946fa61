// What the ranks of every scheme compute, over threads, against the reference of the whole problem:
// random masks, lengths, shardings and ranks, kernels that merge and kernels that do not.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "attention/cpu/kernels.h"
#include "parallel/executor/plain_kernel.h"
#include "parallel/executor/random_case.h"
#include "parallel/executor/rank_run.h"

namespace longca::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kCases = 6;
#else
constexpr int kCases = 40;
#endif

class Schemes : public testing::TestWithParam<std::string> {
 protected:
  const Scheme& scheme() const { return find_scheme(GetParam()); }
};

void expect_planned_bytes(const RankRun& run) {
  EXPECT_EQ(run.forward_bytes, run.forward_plan_bytes);
  EXPECT_EQ(run.backward_bytes, run.backward_plan_bytes);
}

void expect_right(const ParallelProblem& problem, const Inputs& inputs, const RankRun& run) {
  for (const Support& support : run.supports) ASSERT_TRUE(support.ok()) << support.reason;
  const Reference reference(problem.problem, problem.mask, inputs, {.seconds = 60}, 1);
  ASSERT_EQ(reference.fraction(), 1);
  const Verdict forward = check_forward(reference, run.outputs);
  ASSERT_TRUE(forward.ok) << forward.reason;
  const Verdict backward = check_backward(reference, run.outputs, inputs);
  ASSERT_TRUE(backward.ok) << backward.reason;
  expect_planned_bytes(run);
}

/// Runs random cases until `kCases` of them were ones that the scheme supports.
void check_random_cases(const Scheme& scheme, const Kernel& kernel, std::uint32_t first_seed,
                        Merging merging = Merging::automatic, bool moves = false) {
  int ran = 0;
  for (std::uint32_t seed = first_seed; ran < kCases; ++seed) {
    ASSERT_LT(seed, first_seed + 100 * kCases) << "hardly a case is supported";
    std::mt19937 random(seed);
    const ParallelProblem problem = random_case(scheme, random);
    if (!scheme.supports(problem).ok()) continue;
    ++ran;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << describe(problem));
    const Inputs inputs = make_inputs(problem.problem, seed);
    const RankRun run = run_ranks(scheme, problem, inputs,
                                  {.kernel = &kernel,
                                   .merging = merging,
                                   .moves = moves,
                                   .repetitions = moves ? 2 : 1 + ran % 2});
    ASSERT_NO_FATAL_FAILURE(expect_right(problem, inputs, run));
  }
}

TEST_P(Schemes, AgreeWithTheReferenceWhereTheKernelMerges) {
  check_random_cases(scheme(), *make_flash_cpu(), 0);
}

TEST_P(Schemes, AgreeWithTheReferenceWhereTheKernelOverwrites) {
  check_random_cases(scheme(), PlainKernel({.accumulate = false}), 10000);
}

TEST_P(Schemes, AgreeWithTheReferenceWhereTheKernelTakesNoGaps) {
  check_random_cases(scheme(), PlainKernel({.accumulate = false, .strided = false}), 20000);
}

/// And prepares rows while messages are on their way, as they are when its call comes.
TEST_P(Schemes, AgreeWithTheReferenceWhereTheKernelSumsKeysOnly) {
  const PlainKernel kernel({.sums_keys = true, .bytes_of_rows = 1});
  check_random_cases(scheme(), kernel, 30000, Merging::after);
  EXPECT_GT(kernel.rows_prepared, 0) << "some rank waits for keys, in ulysses for rows of others";
}

/// The last step of a row, where one result is there; nothing in ulysses, where rows have one step.
TEST_P(Schemes, AgreeWithTheReferenceWhereTheKernelMergesTheEarlierResult) {
  const PlainKernel kernel(
      {.accumulate = false, .sums_keys = true, .merges_earlier = true, .bytes_of_rows = 1});
  check_random_cases(scheme(), kernel, 70000);
  if (scheme().name() == "ulysses") {
    EXPECT_EQ(kernel.merged, 0);
  } else {
    EXPECT_GT(kernel.merged, 0);
    EXPECT_GT(kernel.added, 0);
  }
}

TEST_P(Schemes, FollowTensorsThatMove) {
  check_random_cases(scheme(), *make_flash_cpu(), 40000, Merging::after, true);
  check_random_cases(scheme(), PlainKernel({.sums_keys = true, .bytes_of_rows = 1}), 50000,
                     Merging::after, true);
  check_random_cases(scheme(), PlainKernel({.accumulate = false, .strided = false}), 60000,
                     Merging::automatic, true);
  check_random_cases(scheme(), PlainKernel({.accumulate = false, .merges_earlier = true}), 80000,
                     Merging::automatic, true);
}

TEST_P(Schemes, ComputeWithoutCommunication) {
  const auto kernel = make_flash_cpu();
  ParallelProblem problem{.problem = square_problem(200, 8, 4, 16, DType::bfloat16),
                          .mask = Mask::from_slices(200, 200, {{0, 200, 0, 200}}),
                          .lengths = {},
                          .ranks = 4};
  const Inputs inputs = make_inputs(problem.problem, 1);
  const RankRun run =
      run_ranks(scheme(), problem, inputs, {.kernel = kernel.get(), .communicate = false});
  EXPECT_EQ(run.forward_bytes, std::vector<std::int64_t>(4));
  EXPECT_EQ(run.backward_bytes, std::vector<std::int64_t>(4));
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Schemes, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace longca::test
