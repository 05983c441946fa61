#include "parallel/executor/kernel_computer.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/error.h"
#include "parallel/executor/kernel_plans.h"
#include "parallel/executor/kernel_steps.h"

namespace longca {

struct KernelComputer::Impl {
  const Kernel& kernel;
  Problem whole;
  StepMath& math;
  KernelPlans plans;
  Scratch scratch;
  std::array<std::vector<std::unique_ptr<ComputeStep>>, 2> steps;  ///< of the passes, by op
  struct Call {
    KernelStep* step;
    std::size_t plan;
  };
  std::vector<Call> calls;
  bool accumulates = false, merges = false, copies = false;

  Impl(const Kernel& k, const Problem& problem)
      : kernel(k), whole(problem), math(step_math(problem.device)), plans(k) {}

  Problem problem_of(const OpViews& views, std::size_t q) const {
    const TensorView& rows = views.tensors.at(q);
    const TensorView& keys = views.tensors.at(q + 1);
    Problem problem = whole;
    problem.tokens_q = rows.tokens;
    problem.tokens_k = keys.tokens;
    problem.heads_q = static_cast<int>(rows.heads);
    problem.heads_k = static_cast<int>(keys.heads);
    problem.backward = problem.accumulate = false;
    return problem;
  }

  Support keep(std::unique_ptr<KernelStep> step, const Mask& mask,
               std::unique_ptr<ComputeStep>& place) {
    std::size_t plan = 0;
    if (Support said = plans.want(step->problem(), mask, plan); !said.ok()) return said;
    accumulates |= step->delivery() == Delivery::accumulate;
    merges |= step->delivery() == Delivery::partial;
    copies |= step->copies_inputs();
    calls.push_back({step.get(), plan});
    place = std::move(step);
    return {};
  }

  Support prepare_forward(const Attend& op, const Mask& mask, const OpViews& views,
                          std::unique_ptr<ComputeStep>& place) {
    const Capabilities& can = kernel.capabilities();
    if (!can.returns_lse && !(op.first && views.tensors.at(3).dtype == whole.dtype)) {
      return Support::unsupported(can.name + " returns no lse to merge results by");
    }
    return keep(make_forward_step(problem_of(views, 0), can, math, views, op.first, scratch), mask,
                place);
  }

  Support prepare_backward(const AttendBackward& op, const Mask& mask, const OpViews& views,
                           std::unique_ptr<ComputeStep>& place) {
    const Capabilities& can = kernel.capabilities();
    if (!can.gradient_of_parts) {
      return Support::unsupported(
          can.name +
          "'s backward pass goes by its own forward pass, not by the lse that ranks share");
    }
    return keep(make_backward_step(problem_of(views, 1), can, math, views, op.first_dq,
                                   op.first_dkv, scratch),
                mask, place);
  }
};

KernelComputer::KernelComputer(const Kernel& kernel, const Problem& problem)
    : impl_(std::make_unique<Impl>(kernel, problem)) {}

KernelComputer::~KernelComputer() = default;

Support KernelComputer::prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) {
  const std::vector<Op>& ops = backward ? plan.backward : plan.forward;
  auto& steps = impl_->steps[backward ? 1 : 0];
  steps.resize(ops.size());
  const auto index = static_cast<std::size_t>(op);
  const auto mask = [&](int i) -> const Mask& { return plan.masks[static_cast<std::size_t>(i)]; };
  impl_->scratch.restart();
  if (const auto* attend = std::get_if<Attend>(&ops[index].what)) {
    return impl_->prepare_forward(*attend, mask(attend->mask), views, steps[index]);
  }
  if (const auto* attend = std::get_if<AttendBackward>(&ops[index].what)) {
    return impl_->prepare_backward(*attend, mask(attend->mask), views, steps[index]);
  }
  steps[index] = make_math_step(ops[index], views, impl_->math);
  return {};
}

void KernelComputer::ready() {
  impl_->plans.make();
  impl_->scratch.allocate(Device::get(impl_->whole.device).memory());
  for (const Impl::Call& call : impl_->calls) {
    call.step->set_plan(impl_->plans[call.plan]);
    call.step->place(impl_->scratch);
  }
}

void KernelComputer::run(bool backward, int op, Stream stream) {
  impl_->steps[backward ? 1 : 0].at(static_cast<std::size_t>(op))->run(stream);
}

std::int64_t KernelComputer::workspace_bytes() const {
  return impl_->plans.workspace_bytes() + impl_->scratch.bytes();
}

std::map<std::string, std::string> KernelComputer::notes() const {
  std::map<std::string, std::string> notes = impl_->plans.notes();
  if (impl_->accumulates && impl_->merges) {
    notes["merging"] = "by the kernel, or after it where a step's layout is not its own";
  } else if (impl_->accumulates) {
    notes["merging"] = "by the kernel";
  } else if (impl_->merges) {
    notes["merging"] = "after the kernel, in passes of their own";
  }
  if (impl_->copies) notes["copies"] = "inputs of steps, made contiguous for the kernel";
  return notes;
}

double KernelComputer::compile_ms() const {
  return impl_->plans.compile_ms();
}

}  // namespace longca
