#pragma once

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "attention/cpu/kernels.h"
#include "attention/inputs/inputs.h"
#include "attention/reference/verifier.h"
#include "core/tensor.h"
#include "mask/mask.h"

namespace longca::test {

/// The outputs of both passes of one problem.
struct Outputs {
  explicit Outputs(const Problem& p)
      : o(p.dtype, p.tokens_q, p.heads_q, p.value_dim()),
        lse(p.heads_q, p.tokens_q),
        dq(p.dtype, p.tokens_q, p.heads_q, p.head_dim),
        dk(p.dtype, p.tokens_k, p.heads_k, p.head_dim),
        dv(p.dtype, p.tokens_k, p.heads_k, p.value_dim()) {
    if (p.sink) dsink = HostTensor(DType::float32, 1, p.heads_q, 1);
    for (const HostTensor* tensor : {&o, &dq, &dk, &dv, &dsink}) poison(tensor->view());
    poison(lse.view());
  }

  ForwardArgs forward_args(const Inputs& in) const {
    return {in.q.view(), in.k.view(), in.v.view(), o.view(), lse.view(), in.sink_logits()};
  }
  BackwardArgs backward_args(const Inputs& in) const {
    return {in.dout.view(),
            in.q.view(),
            in.k.view(),
            in.v.view(),
            o.view(),
            lse.view(),
            dq.view(),
            dk.view(),
            dv.view(),
            in.sink_logits(),
            static_cast<float*>(dsink.view().data)};
  }

  HostTensor o;
  HostLse lse;
  HostTensor dq, dk, dv, dsink;
};

/// Both passes of a kernel.
inline Outputs solve(const Kernel& kernel, Problem problem, const Mask& mask,
                     const Inputs& inputs) {
  problem.backward = true;
  Outputs outputs(problem);
  const auto plan = kernel.plan(problem, mask);
  plan->forward(outputs.forward_args(inputs));
  plan->backward(outputs.backward_args(inputs));
  return outputs;
}

/// Both passes of `naive`.
inline Outputs solve(const Problem& problem, const Mask& mask, const Inputs& inputs) {
  return solve(*make_naive_cpu(), problem, mask, inputs);
}

inline Verdict check_forward(const Reference& reference, const Outputs& outputs) {
  const ConstLseView lse(outputs.lse.view());
  return reference.check_forward(outputs.o.view(), &lse);
}

inline Verdict check_backward(const Reference& reference, const Outputs& outputs,
                              const Inputs& inputs) {
  return reference.check_backward(outputs.backward_args(inputs));
}

inline Problem square_problem(std::int64_t tokens, int heads_q, int heads_k, int head_dim,
                              DType dtype) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = tokens;
  problem.heads_q = heads_q;
  problem.heads_k = heads_k;
  problem.head_dim = head_dim;
  problem.dtype = dtype;
  problem.backward = true;
  return problem;
}

}  // namespace longca::test
