#pragma once

#include <memory>

#include "attention/api/registry.h"
#include "attention/inputs/inputs.h"
#include "bench/cell/tensors.h"
#include "mask/generators.h"

namespace longca::testing {

/// A kernel of the CPU with a small problem's tensors, whose forward pass has run.
struct TimedKernel {
  /// `value_dim` 0: that of q and k, which is 12.
  TimedKernel(const std::string& name, DType dtype, Pass timed, int value_dim = 0)
      : pass(timed),
        problem{.tokens_q = 40,
                .tokens_k = 40,
                .heads_q = 4,
                .heads_k = 2,
                .head_dim = 12,
                .head_dim_v = value_dim,
                .dtype = dtype,
                .backward = timed != Pass::forward},
        inputs(make_inputs(problem, 7)),
        outputs(Outputs::for_problem(problem)) {
    MaskSpec spec;
    spec.name = "causal";
    spec.tokens = problem.tokens_q;
    plan = KernelRegistry::global().find(name).plan(problem, generate_mask(spec).mask);
    forward();
  }

  void forward() { plan->forward(outputs.forward_args(inputs)); }
  void call() {
    if (pass != Pass::backward) forward();
    if (pass != Pass::forward) plan->backward(outputs.backward_args(inputs));
  }
  PassTensors tensors() const { return outputs.with(inputs); }
  std::uint64_t results() const { return hash_results(device(), tensors(), pass); }
  std::uint64_t input_bits() const {
    const PassTensors t = tensors();
    const std::uint64_t hash = fingerprint(inputs, device());
    return pass == Pass::backward ? hash_results(device(), t, Pass::forward) ^ hash : hash;
  }
  static Device& device() { return Device::get(DeviceKind::cpu); }

  Pass pass;
  Problem problem;
  Inputs inputs;
  Outputs outputs;
  std::unique_ptr<Plan> plan;
};

}  // namespace longca::testing
