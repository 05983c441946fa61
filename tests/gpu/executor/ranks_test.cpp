// Ranks of every scheme on the lanes of a GPU, which they share, against the reference of the whole
// problem on the host.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "attention/api/registry.h"
#include "gpu/executor/gpu_ranks.h"
#include "gpu/gpu_test.h"
#include "parallel/executor/rank_run.h"

namespace longca::testing {
namespace {

using test::RankRun;

class GpuRanks : public GpuTest {
 protected:
  static ParallelProblem problem_of(const Scheme& scheme, Mask mask, int ranks, bool sink) {
    ParallelProblem p{.problem = {}, .mask = std::move(mask), .lengths = {}, .ranks = ranks};
    p.problem.tokens_q = p.problem.tokens_k = p.mask.q_tokens();
    p.problem.heads_q = 8;
    p.problem.heads_k = 4;
    p.problem.head_dim = 128;
    p.problem.dtype = DType::bfloat16;
    p.problem.backward = true;
    p.problem.sink = sink;
    p.problem.device = DeviceKind::cuda;
    p.shard = scheme.best_shard();
    return p;
  }

  /// What all schemes are to compute of one mask.
  struct Expected {
    explicit Expected(const ParallelProblem& p)
        : problem(on_host(p.problem)),
          inputs(make_inputs(problem, 1)),
          reference(problem, p.mask, inputs, {.seconds = 60}, 1) {}

    static Problem on_host(Problem problem) {
      problem.device = DeviceKind::cpu;
      return problem;
    }

    Problem problem;
    Inputs inputs;
    Reference reference;
  };

  /// Runs it, unless a step is one that the kernel does not do; says whether it did.
  static bool check(const Scheme& scheme, const Kernel& kernel, const ParallelProblem& problem,
                    Merging merging, const Expected& expected) {
    if (!scheme.supports(problem).ok()) return false;
    const RankRun run = test::run_ranks(
        scheme, problem, expected.inputs,
        {.kernel = &kernel, .launch = run_gpu_ranks, .merging = merging, .repetitions = 2});
    for (const Support& support : run.supports) {
      if (!support.ok()) return false;
    }
    const Verdict forward = test::check_forward(expected.reference, run.outputs);
    EXPECT_TRUE(forward.ok) << forward.reason;
    const Verdict backward = test::check_backward(expected.reference, run.outputs, expected.inputs);
    EXPECT_TRUE(backward.ok) << backward.reason;
    EXPECT_EQ(run.forward_bytes, run.forward_plan_bytes);
    EXPECT_EQ(run.backward_bytes, run.backward_plan_bytes);
    return true;
  }

  /// All schemes × 2, 4 and 7 ranks; how many of them the kernel could do.
  static int check_all(const std::string& kernel, const Mask& mask,
                       Merging merging = Merging::automatic, bool sink = false) {
    int done = 0;
    const Expected expected(problem_of(*schemes().front(), mask, 2, sink));
    for (const auto& scheme : schemes()) {
      for (const int ranks : {2, 4, 7}) {
        SCOPED_TRACE(fmt::format("{} with {} on {} ranks", scheme->name(), kernel, ranks));
        done += check(*scheme, KernelRegistry::global().find(kernel, DeviceKind::cuda),
                      problem_of(*scheme, mask, ranks, sink), merging, expected);
        if (HasFailure()) return done;
      }
    }
    return done;
  }
};

Mask one_slice(std::int64_t tokens, MaskSliceType type) {
  return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, type}});
}

/// Documents that are causal, one of which all others see.
Mask mixed(std::int64_t tokens) {
  return Mask::from_slices(tokens, tokens,
                           {{0, 150, 0, 150, MaskSliceType::causal},
                            {150, tokens, 0, 150, MaskSliceType::full},
                            {150, 600, 150, 600, MaskSliceType::causal},
                            {600, tokens, 600, tokens, MaskSliceType::bi_causal}});
}

/// Rows without keys, and some whose first call is not the first one on all of its rows.
Mask gaps(std::int64_t tokens) {
  return Mask::from_slices(
      tokens, tokens,
      {{100, 700, 0, 300, MaskSliceType::full}, {500, tokens, 500, tokens, MaskSliceType::causal}});
}

TEST_F(GpuRanks, WithAKernelThatMerges) {
  EXPECT_GT(check_all("naive", one_slice(700, MaskSliceType::causal), Merging::by_kernel), 12);
  EXPECT_GT(check_all("naive", mixed(901), Merging::by_kernel), 12);
  EXPECT_GT(check_all("naive", mixed(901)), 12);
  EXPECT_GT(check_all("naive", gaps(901), Merging::by_kernel, true), 12);
}

/// Any step's mask, rows and keys of any number; merged by the kernel too, if it can.
TEST_F(GpuRanks, WithSlice) {
  const Kernel& slice = KernelRegistry::global().find("slice", DeviceKind::cuda);
  Problem problem;
  problem.tokens_q = problem.tokens_k = 1000;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  problem.backward = true;
  if (const Support can = slice.supports(problem, mixed(1000)); !can.ok()) {
    GTEST_SKIP() << can.reason;
  }
  for (const Merging merging : {Merging::after, Merging::by_kernel}) {
    EXPECT_GT(check_all("slice", one_slice(1000, MaskSliceType::causal), merging), 12);
    EXPECT_GT(check_all("slice", mixed(1100), merging), 12);
    EXPECT_GT(check_all("slice", mixed(1100), merging, true), 12);
    EXPECT_GT(check_all("slice", gaps(1000), merging, true), 12);
  }
}

TEST_F(GpuRanks, WithAKernelThatOverwrites) {
  EXPECT_GT(check_all("flashmask_native", one_slice(1000, MaskSliceType::full)), 6);
  EXPECT_GT(check_all("flashmask_native", one_slice(1200, MaskSliceType::causal)), 6);
  EXPECT_GT(check_all("flashmask_native", mixed(1100)), 0);
}

TEST_F(GpuRanks, WithAKernelThatTakesNoGaps) {
  const Kernel& cudnn = KernelRegistry::global().find("cudnn", DeviceKind::cuda);
  Problem problem;
  problem.tokens_q = problem.tokens_k = 1000;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const Mask full = one_slice(1000, MaskSliceType::full);
  if (const Support can = cudnn.supports(problem, full); !can.ok()) GTEST_SKIP() << can.reason;
  EXPECT_GT(check_all("cudnn", full), 6);
  EXPECT_GT(check_all("cudnn", one_slice(1000, MaskSliceType::causal)), 0);
}

}  // namespace
}  // namespace longca::testing
