#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "attention/api/kernel.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "gpu/gpu_test.h"

namespace longca::testing {

inline constexpr std::uint64_t kSeed = 7;

/// bfloat16 of 128 dimensions, both passes.
inline Problem problem_of(std::int64_t tokens_q, std::int64_t tokens_k, int heads_q, int heads_k) {
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

/// Outputs of both passes, poisoned.
struct Outputs {
  explicit Outputs(const Problem& p)
      : memory(Device::get(p.device).memory()),
        o(memory, p.dtype, p.tokens_q, p.heads_q, p.value_dim()),
        lse(memory, p.heads_q, p.tokens_q),
        dq(memory, p.dtype, p.tokens_q, p.heads_q, p.head_dim),
        dk(memory, p.dtype, p.tokens_k, p.heads_k, p.head_dim),
        dv(memory, p.dtype, p.tokens_k, p.heads_k, p.value_dim()) {
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

inline BackwardArgs backward_args(const Inputs& in, const Outputs& out) {
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

/// A kernel of bfloat16 on the GPU, its results held to the reference.
class KernelTest : public GpuTest {
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

  /// Both passes, held to the GPU's reference in part, as the budget allows: for long problems.
  void expect_right_there(const Problem& problem, const Mask& mask, const std::string& what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(kernel_->supports(problem, mask).reason, "");
    const Outputs outputs = solve(problem, mask);
    const Inputs inputs = make_inputs(problem, kSeed);
    const auto verifier = make_verifier(problem, mask, inputs, {}, kSeed);
    const ConstLseView lse(outputs.lse.view());
    const Verdict forward = verifier->check_forward(outputs.o.view(), &lse);
    EXPECT_TRUE(forward.ok) << forward.reason;
    const Verdict backward = verifier->check_backward(backward_args(inputs, outputs));
    EXPECT_TRUE(backward.ok) << backward.reason;
  }

  std::unique_ptr<Kernel> kernel_;
};

}  // namespace longca::testing
