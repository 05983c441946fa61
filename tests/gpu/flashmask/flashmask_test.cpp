#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/adapters/flashmask_native/flashmask_native.h"
#include "attention/inputs.h"
#include "attention/reference/verify.h"
#include "gpu/gpu_test.h"
#include "mask/generators.h"

namespace longca::testing {
namespace {

constexpr std::uint64_t kSeed = 7;

Problem problem_of(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q, int heads_k) {
  Problem problem;
  problem.tokens_q = tokens_q;
  problem.tokens_k = tokens_k;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  problem.backward = true;
  return problem;
}

/// Small parameters, so that masks stay what they are at few tokens.
Mask mask_of(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.window = std::max<std::int64_t>(1, tokens / 6);
  spec.block_tokens = std::max<std::int64_t>(1, tokens / 9);
  spec.lengths = "pile";
  return generate_mask(spec).mask;
}

/// Outputs of both passes, poisoned.
struct Outputs {
  explicit Outputs(const Problem& p)
      : memory(Device::get(p.device).memory()),
        o(memory, p.dtype, p.tokens_q, p.heads_q, p.head_dim),
        lse(memory, p.heads_q, p.tokens_q),
        dq(memory, p.dtype, p.tokens_q, p.heads_q, p.head_dim),
        dk(memory, p.dtype, p.tokens_k, p.heads_k, p.head_dim),
        dv(memory, p.dtype, p.tokens_k, p.heads_k, p.head_dim) {
    Device& device = Device::get(p.device);
    for (const Tensor* tensor : {&o, &dq, &dk, &dv}) {
      device.fill(tensor->view().data, 0xff, tensor->bytes());
    }
    device.fill(lse.view().data, 0xff, lse.bytes());
  }

  MemoryTracker& memory;
  Tensor o;
  Lse lse;
  Tensor dq, dk, dv;
};

BackwardArgs backward_args(const Inputs& in, const Outputs& out) {
  BackwardArgs args;
  args.dout = in.dout.view();
  args.q = in.q.view();
  args.k = in.k.view();
  args.v = in.v.view();
  args.o = out.o.view();
  args.lse = out.lse.view();
  args.dq = out.dq.view();
  args.dk = out.dk.view();
  args.dv = out.dv.view();
  return args;
}

class Flashmask : public GpuTest {
 protected:
  /// Both passes on the GPU, every element held to the float64 reference on the CPU.
  void expect_right(const Problem& problem, const Mask& mask, const std::string& what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(kernel_->supports(problem, mask).reason, "");
    const Outputs device = solve(problem, mask);
    Problem host_problem = problem;
    host_problem.device = DeviceKind::cpu;
    const Inputs inputs = make_inputs(host_problem, kSeed);
    const Outputs host(host_problem);
    for (const auto tensor : {&Outputs::o, &Outputs::dq, &Outputs::dk, &Outputs::dv}) {
      gpu().copy((host.*tensor).view().data, (device.*tensor).view().data, (host.*tensor).bytes());
    }
    gpu().copy(host.lse.view().data, device.lse.view().data, host.lse.bytes());
    const Reference reference(host_problem, mask, inputs, {.seconds = 1e6}, kSeed);
    const ConstLseView lse(host.lse.view());
    const Verdict forward = reference.check_forward(host.o.view(), &lse);
    EXPECT_TRUE(forward.ok) << forward.reason;
    const Verdict backward = reference.check_backward(backward_args(inputs, host));
    EXPECT_TRUE(backward.ok) << backward.reason;
  }

  Outputs solve(const Problem& problem, const Mask& mask) {
    const Inputs inputs = make_inputs(problem, kSeed);
    Outputs outputs(problem);
    const auto plan = kernel_->plan(problem, mask);
    ForwardArgs forward;
    forward.q = inputs.q.view();
    forward.k = inputs.k.view();
    forward.v = inputs.v.view();
    forward.o = outputs.o.view();
    forward.lse = outputs.lse.view();
    forward.stream = gpu().stream();
    plan->forward(forward);
    BackwardArgs backward = backward_args(inputs, outputs);
    backward.stream = gpu().stream();
    // Twice: what the first call left in the workspace does not show.
    plan->backward(backward);
    plan->backward(backward);
    gpu().synchronize();
    return outputs;
  }

  std::unique_ptr<Kernel> kernel_ = make_flashmask_native();
};

std::vector<std::string> static_masks() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) {
    if (!traits.uses_blocks) names.push_back(traits.name);
  }
  return names;
}

TEST_F(Flashmask, EveryStaticMask) {
  for (const std::string& name : static_masks()) {
    for (const std::int64_t tokens : {1, 65, 333}) {
      const Mask mask = mask_of(name, tokens);
      const Problem problem = problem_of(tokens, tokens, 8, 2);
      expect_right(problem, mask, name + " of " + std::to_string(tokens));
    }
  }
}

TEST_F(Flashmask, HeadGroups) {
  const struct { int heads_q, heads_k; } shapes[] = {{64, 8}, {4, 4}, {6, 2}, {5, 1}};
  for (const auto& shape : shapes) {
    expect_right(problem_of(200, 200, shape.heads_q, shape.heads_k), mask_of("causal", 200),
                 std::to_string(shape.heads_q) + ":" + std::to_string(shape.heads_k));
  }
}

TEST_F(Flashmask, FewerAndMoreQueriesThanKeysAndRowsWithoutKeys) {
  const auto masked = [](std::int64_t q, std::int64_t k, Slice slice) {
    return Mask::from_slices(q, k, {slice});
  };
  expect_right(problem_of(200, 333, 4, 2), masked(200, 333, {10, 150, 20, 300, SliceType::causal}),
               "causal rectangle");
  expect_right(problem_of(333, 70, 4, 2), masked(333, 70, {130, 260, 0, 70, SliceType::full}),
               "rows before and after see nothing");
  expect_right(problem_of(129, 129, 2, 1), masked(129, 129, {0, 0, 0, 0, SliceType::full}),
               "no row sees anything");
  expect_right(problem_of(0, 65, 2, 1), masked(0, 65, {0, 0, 0, 0, SliceType::full}), "no queries");
  expect_right(problem_of(65, 0, 2, 1), masked(65, 0, {0, 0, 0, 0, SliceType::full}), "no keys");
}

TEST_F(Flashmask, OneLongColumnSplitsTheGroupOfHeads) {
  // All rows see the first keys, the rest nearly nothing: work groups of one key block share it.
  expect_right(problem_of(1500, 1500, 8, 2), mask_of("prefix_lm_document", 1500), "prefix");
  expect_right(problem_of(1000, 1000, 8, 1), mask_of("full", 1000), "full");
}

TEST_F(Flashmask, MasksOfEightThousandTokens) {
  const Problem problem = problem_of(8192, 8192, 64, 8);
  for (const std::string name : {"causal", "causal_document", "global_sliding_window"}) {
    SCOPED_TRACE(name);
    MaskSpec spec;
    spec.name = name;
    spec.tokens = 8192;
    const Mask mask = generate_mask(spec).mask;
    const Outputs outputs = solve(problem, mask);
    const Inputs inputs = make_inputs(problem, kSeed);
    const auto verifier = make_verifier(problem, mask, inputs, {}, kSeed);
    const ConstLseView lse(outputs.lse.view());
    const Verdict forward = verifier->check_forward(outputs.o.view(), &lse);
    EXPECT_TRUE(forward.ok) << forward.reason;
    const Verdict backward = verifier->check_backward(backward_args(inputs, outputs));
    EXPECT_TRUE(backward.ok) << backward.reason;
  }
}

TEST_F(Flashmask, SmallerTilesWhereSharedMemoryIsScarce) {
  kernel_ = make_flashmask_native(163 << 10);  // compute capability 8.0
  for (const std::string& name : static_masks()) {
    expect_right(problem_of(333, 333, 8, 2), mask_of(name, 333), name);
  }
  expect_right(problem_of(1000, 1000, 8, 1), mask_of("full", 1000), "split group");
  kernel_ = make_flashmask_native(99 << 10);  // 8.6 and 8.9
  const Support support = kernel_->supports(problem_of(64, 64, 2, 2), mask_of("causal", 64));
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_NE(support.reason.find("shared memory"), std::string::npos) << support.reason;
}

TEST_F(Flashmask, LargeScoresStayFinite) {
  Problem problem = problem_of(130, 130, 2, 2);
  problem.softmax_scale = 8;  // scores of ±400: exponentials overflow without the row's greatest
  expect_right(problem, mask_of("causal", 130), "scale 8");
}

TEST_F(Flashmask, RefusesWhatItCannotDo) {
  const Mask causal = mask_of("causal", 64);
  Problem problem = problem_of(64, 64, 2, 2);
  problem.accumulate = true;
  EXPECT_EQ(kernel_->supports(problem, causal).code, StatusCode::unsupported);
  problem.accumulate = false;
  problem.dtype = DType::float32;
  EXPECT_EQ(kernel_->supports(problem, causal).code, StatusCode::unsupported);
  problem.dtype = DType::bfloat16;
  EXPECT_EQ(kernel_->supports(problem, mask_of("block_sparse", 64)).code, StatusCode::unsupported);
}

}  // namespace
}  // namespace longca::testing
