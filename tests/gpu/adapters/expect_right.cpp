#include "gpu/adapters/expect_right.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "attention/reference/verifier.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr std::int64_t kMaxOnHost = 1024;
constexpr VerifyBudget kEverything{.seconds = 1e6};

void expect_verdicts(const Verifier& verifier, const Problem& problem, const Inputs& inputs,
                     const Outputs& outputs) {
  EXPECT_EQ(verifier.fraction(), 1.0);
  const ConstLseView lse(outputs.lse.view());
  const Verdict forward = verifier.check_forward(outputs.o.view(), &lse);
  EXPECT_TRUE(forward.ok) << forward.reason;
  if (!problem.backward) return;
  const Verdict backward = verifier.check_backward(outputs.backward_args(inputs));
  EXPECT_TRUE(backward.ok) << backward.reason;
}

}  // namespace

void expect_right(const Problem& problem, const Mask& mask, const Inputs& inputs,
                  const Outputs& outputs) {
  if (std::max(problem.tokens_q, problem.tokens_k) > kMaxOnHost) {
    return expect_verdicts(*make_verifier(problem, mask, inputs, kEverything, kInputSeed), problem,
                           inputs, outputs);
  }
  Problem on_host = problem;
  on_host.device = DeviceKind::cpu;
  const Inputs host_inputs = make_inputs(on_host, kInputSeed);
  const Outputs host = Outputs::for_problem(on_host);
  Device& gpu = *outputs.device;
  gpu.copy(host.o.view().data, outputs.o.view().data, host.o.bytes());
  for (const auto tensor : {&Outputs::dq, &Outputs::dk, &Outputs::dv}) {
    if (!problem.backward) break;
    gpu.copy((host.*tensor).view().data, (outputs.*tensor).view().data, (host.*tensor).bytes());
  }
  gpu.copy(host.lse.view().data, outputs.lse.view().data, host.lse.bytes());
  gpu.copy(host.dsink.view().data, outputs.dsink.view().data, host.dsink.bytes());
  expect_verdicts(*make_verifier(on_host, mask, host_inputs, kEverything, kInputSeed), on_host,
                  host_inputs, host);
}

void expect_right(const Kernel& kernel, const Problem& problem, const Mask& mask) {
  const Support support = kernel.supports(problem, mask);
  ASSERT_TRUE(support.ok()) << support.reason;
  const Inputs inputs = make_inputs(problem, kInputSeed);
  const Outputs outputs = Outputs::for_problem(problem);
  const auto plan = kernel.plan(problem, mask);
  // Twice: what the first call leaves in the workspace must not show.
  for (int call = 0; call < 2; ++call) {
    outputs.poison_forward();
    plan->forward(outputs.forward_args(inputs));
    if (!problem.backward) continue;
    outputs.poison_backward();
    plan->backward(outputs.backward_args(inputs));
  }
  outputs.device->synchronize();
  expect_right(problem, mask, inputs, outputs);
}

Problem gpu_problem(std::int64_t tokens, int heads_q, int heads_k) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = tokens;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  problem.backward = true;
  return problem;
}

Mask small_mask(const std::string& name, const Problem& problem) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = problem.tokens_q;
  spec.lengths = "pile";
  spec.window = std::max<std::int64_t>(1, problem.tokens_q / 6);
  spec.block_tokens = std::max<std::int64_t>(1, problem.tokens_q / 9);
  spec.block = 64;
  spec.heads_q = problem.heads_q;
  spec.heads_k = problem.heads_k;
  return generate_mask(spec).mask;
}

}  // namespace longca::testing
