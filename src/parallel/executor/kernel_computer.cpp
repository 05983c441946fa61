#include "parallel/executor/kernel_computer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "parallel/executor/kernel_plans.h"
#include "parallel/executor/kernel_steps.h"
#include "parallel/executor/late_merging.h"
#include "parallel/executor/mapped_math.h"
#include "parallel/executor/op_analysis.h"

namespace longca {
namespace {

/// A run of copies or of totals (OpRuns), done in one call.
class RunStep final : public ComputeStep {
 public:
  explicit RunStep(StepMath& math) : math_(math) {}
  void add(const Op& op, const OpViews& views) {
    if (const auto* total = std::get_if<Total>(&op.what)) {
      sums_.push_back(sum_of(*total, views));
    } else {
      copies_.push_back({views.tensors.at(0), views.tensors.at(1)});
    }
  }
  void run(Stream stream) override {
    math_.copy_all(copies_, stream);
    math_.total_all(sums_, stream);
  }

 private:
  static SumOfRows sum_of(const Total& total, const OpViews& views) {
    SumOfRows sum{{}, views.tensors.at(0)};
    for (std::size_t i = 0; i < total.parts.size(); ++i) {
      sum.parts.push_back({views.tensors.at(i + 1), total.parts[i].row});
    }
    return sum;
  }

  StepMath& math_;
  std::vector<TensorCopy> copies_;
  std::vector<SumOfRows> sums_;
};

/// What one pass consists of.
struct PassParts {
  std::vector<std::unique_ptr<ComputeStep>> steps;  ///< by op; null for exchanges
  std::optional<LateMerging> late;                  ///< set where the kernel does not merge
  std::map<int, PartStore> stores;                  ///< by buffer that is merged late
  std::optional<OpRuns> runs;
  std::map<int, RunStep*> run_steps;  ///< by the first op of the run

  bool is_late(const Region& region) const { return late && late->allowed(region.buffer); }
  std::int64_t store_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [buffer, store] : stores) bytes += store.bytes();
    return bytes;
  }
};

/// The whole buffer, in coordinates whose origin is the first element of `region`.
Box whole_buffer(const PlanBuffer& buffer, const Region& region) {
  return {{-region.tokens.begin, buffer.tokens - region.tokens.begin},
          {-region.heads.begin, buffer.heads - region.heads.begin}};
}

}  // namespace

Support check_step(const Capabilities& can, const RankPlan& plan, const Op& op, DType dtype) {
  if (const auto* attend = std::get_if<Attend>(&op.what)) {
    const PlanBuffer& o = plan.buffers[static_cast<std::size_t>(attend->o.buffer)];
    const bool is_whole = attend->first && (!o.float32 || dtype == DType::float32);
    if (!can.returns_lse && !is_whole) {
      return Support::unsupported(can.name + " returns no lse to merge results by");
    }
  }
  if (std::holds_alternative<AttendBackward>(op.what) && !can.gradient_of_parts) {
    return Support::unsupported(
        can.name +
        "'s backward pass goes by its own forward pass, not by the lse that ranks share");
  }
  return {};
}

struct KernelComputer::Impl {
  const Kernel& kernel;
  const Capabilities& can;
  Problem whole;
  AddressMap in_place;  ///< maps nothing
  const AddressMap& map;
  std::optional<MappedMath> mapped;
  StepMath& math;
  KernelPlans plans;
  Scratch scratch;
  Buffer parts;  ///< memory of the part stores; the passes share it
  PassParts forward, backward;
  struct Call {
    KernelStep* step;
    std::size_t plan;  ///< index into `plans`
  };
  std::vector<Call> calls;
  std::vector<Delivery> deliveries;
  bool copies = false;
  bool sums_keys = false;
  bool merges_earlier = false;
  bool merges_after;

  Impl(const Kernel& k, const Problem& problem, Merging merging, const AddressMap* given)
      : kernel(k),
        can(k.capabilities()),
        whole(problem),
        map(given != nullptr ? *given : in_place),
        math(given != nullptr ? mapped.emplace(step_math(problem.device), map)
                              : step_math(problem.device)),
        plans(k),
        merges_after(!can.accumulate || merging == Merging::after ||
                     (merging == Merging::automatic && problem.device == DeviceKind::cuda)) {}

  StepSetting setting() { return {can, kernel.sums_key_gradients(), math, scratch, map}; }

  Problem problem_of(const TensorView& rows, const TensorView& keys) const {
    Problem problem = whole;
    problem.tokens_q = rows.tokens;
    problem.tokens_k = keys.tokens;
    problem.heads_q = static_cast<int>(rows.heads);
    problem.heads_k = static_cast<int>(keys.heads);
    problem.backward = problem.accumulate = false;
    return problem;
  }

  /// The store of the region's buffer. `view` and `lse`: the views of `region`.
  PartStore& store_of(PassParts& pass, const RankPlan& plan, const Region& region,
                      const TensorView& view, const LseView& lse) const {
    const auto found = pass.stores.find(region.buffer);
    if (found != pass.stores.end()) return found->second;
    const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(region.buffer)];
    const Box all = whole_buffer(buffer, region);
    const LseView whole_lse = lse.data != nullptr ? box_of(lse, all) : lse;
    return pass.stores
        .emplace(region.buffer, PartStore(box_of(view, all), whole_lse, whole.dtype, !can.strided))
        .first->second;
  }

  /// Where an op writes its part of `region`: where the one earlier part lies, if the kernel
  /// merges that (LateMerging::join).
  std::optional<LatePart> late_part(PassParts& pass, const RankPlan& plan, const Region& region,
                                    const TensorView& view, const LseView& lse, bool merges,
                                    bool all_rows) {
    if (!pass.is_late(region)) return std::nullopt;
    PartStore& store = store_of(pass, plan, region, view, lse);
    const Box box{region.tokens, region.heads};
    if (merges && can.strided) {
      if (const auto joint = pass.late->join(store.queue(), region, all_rows)) {
        merges_earlier = true;
        return LatePart{&store, {joint->slot, box}, {}, inside(box, joint->held)};
      }
    }
    MergeQueue::Added added = store.queue().add(box);
    return LatePart{&store, {added.slot, box}, std::move(added.before), {}};
  }

  /// Requests the kernel's plan for a step and moves the step to `made`; or the kernel's refusal.
  Support add_call(std::unique_ptr<KernelStep> step, const Mask& mask,
                   std::unique_ptr<ComputeStep>& made) {
    std::size_t plan = 0;
    if (Support said = plans.want(step->problem(), mask, plan); !said.ok()) return said;
    deliveries.push_back(step->delivery());
    copies |= step->copies_inputs();
    sums_keys |= step->sums_keys();
    calls.push_back({step.get(), plan});
    made = std::move(step);
    return {};
  }

  Support prepare(const RankPlan& plan, const Attend& op, const OpViews& views,
                  std::unique_ptr<ComputeStep>& made) {
    const TensorView& o = views.tensors.at(3);
    const Problem problem = problem_of(views.tensors[0], views.tensors[1]);
    auto late =
        late_part(forward, plan, op.o, o, views.lses.at(0), kernel.merges_earlier(problem), true);
    return add_call(make_forward_step(setting(), problem, views, op.first, std::move(late)),
                    plan.masks[static_cast<std::size_t>(op.mask)], made);
  }

  Support prepare(const RankPlan& plan, const AttendBackward& op, const OpViews& views,
                  std::unique_ptr<ComputeStep>& made) {
    auto late =
        late_part(backward, plan, op.dq, views.tensors.at(5), {}, kernel.adds_to_dq(), false);
    return add_call(make_backward_step(setting(), problem_of(views.tensors[1], views.tensors[2]),
                                       views, op.first_dq, op.first_dkv, std::move(late)),
                    plan.masks[static_cast<std::size_t>(op.mask)], made);
  }

  /// The step of a tensor copy or a total: the first op of a run does it all, the others nothing.
  std::unique_ptr<ComputeStep> run_step(PassParts& pass, const Op& op, int number,
                                        const OpViews& views) {
    RunStep*& run = pass.run_steps[pass.runs->first(number)];
    std::unique_ptr<ComputeStep> made = make_call_step([](Stream) {});
    if (run == nullptr) {
      auto first = std::make_unique<RunStep>(math);
      run = first.get();
      made = std::move(first);
    }
    run->add(op, views);
    return made;
  }

  /// The step of SinkGradients.
  std::unique_ptr<ComputeStep> gradients_step(const SinkGradients& op, const OpViews& views) {
    float* const dsink = views.dsink - op.first_head;
    const TensorView all{dsink, DType::float32, 1, whole.heads_q, 1, whole.heads_q, 1};
    return make_call_step([this, op, all, views](Stream stream) {
      if (op.first) math.clear(all, stream);
      math.sink_gradients(views.sink, views.dsink, views.tensors[0], views.tensors[1],
                          views.lses[0], stream);
    });
  }

  /// The step of an op on a buffer that is merged late: a Clear does nothing, a Convert merges.
  /// Null for other ops.
  std::unique_ptr<ComputeStep> late_step(PassParts& pass, const RankPlan& plan, const Op& op,
                                         const OpViews& views) {
    if (const auto* clear = std::get_if<Clear>(&op.what); clear && pass.is_late(clear->region)) {
      return make_call_step([](Stream) {});
    }
    const auto* convert = std::get_if<Convert>(&op.what);
    if (convert == nullptr || !pass.is_late(convert->from)) return nullptr;
    PartStore& store = store_of(pass, plan, convert->from, views.tensors[0], {});
    const Box box{convert->from.tokens, convert->from.heads};
    if (pass.late->has_one_place(convert->from.buffer)) {
      const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(convert->from.buffer)];
      const TensorView result = box_of(views.tensors[1], whole_buffer(buffer, convert->from));
      const bool fits = can.strided || is_contiguous(result);
      if (fits && result.dtype == whole.dtype) store.write_through(result);
    }
    return make_call_step(
        [this, &store, calls = store.queue().finish(box), box,
         to = views.tensors[1]](Stream stream) { store.deliver(calls, to, box, math, stream); });
  }
};

KernelComputer::KernelComputer(const Kernel& kernel, const Problem& problem, Merging merging,
                               const AddressMap* map)
    : impl_(std::make_unique<Impl>(kernel, problem, merging, map)) {}

KernelComputer::~KernelComputer() = default;

Support KernelComputer::prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) {
  const std::vector<Op>& ops = backward ? plan.backward : plan.forward;
  PassParts& pass = backward ? impl_->backward : impl_->forward;
  if (pass.steps.empty()) {
    pass.steps.resize(ops.size());
    pass.runs.emplace(plan, ops);
    if (impl_->merges_after) pass.late.emplace(plan, ops, !impl_->can.strided);
  }
  impl_->scratch.restart();
  const Op& it = ops[static_cast<std::size_t>(op)];
  Support step = check_step(impl_->can, plan, it, impl_->whole.dtype);
  if (!step.ok()) return step;
  std::unique_ptr<ComputeStep>& made = pass.steps[static_cast<std::size_t>(op)];
  if (const auto* a = std::get_if<Attend>(&it.what)) {
    return impl_->prepare(plan, *a, views, made);
  }
  if (const auto* a = std::get_if<AttendBackward>(&it.what)) {
    return impl_->prepare(plan, *a, views, made);
  }
  const bool copies_tensors = std::holds_alternative<Copy>(it.what) && views.lses.empty();
  if (copies_tensors || std::holds_alternative<Total>(it.what)) {
    made = impl_->run_step(pass, it, op, views);
    return {};
  }
  if (const auto* sinks = std::get_if<SinkGradients>(&it.what)) {
    made = impl_->gradients_step(*sinks, views);
    return {};
  }
  made = impl_->late_step(pass, plan, it, views);
  if (!made) made = make_math_step(it, views, impl_->math);
  return {};
}

void KernelComputer::expect_early(int op) {
  const ComputeStep* step = impl_->backward.steps.at(static_cast<std::size_t>(op)).get();
  const auto& calls = impl_->calls;
  const auto call = std::ranges::find(calls, step, [](const Impl::Call& c) { return c.step; });
  if (call == calls.end() || !call->step->can_prepare_rows()) return;
  const bool shared = std::ranges::any_of(calls, [&](const Impl::Call& c) {
    return c.plan == call->plan && c.step != step && c.step->problem().backward;
  });
  if (!shared) impl_->plans.want_rows(call->plan);
}

void KernelComputer::ready() {
  MemoryTracker& memory = Device::get(impl_->whole.device).memory();
  impl_->plans.make();
  impl_->scratch.allocate(memory);
  impl_->parts =
      Buffer(memory, std::max(impl_->forward.store_bytes(), impl_->backward.store_bytes()));
  for (PassParts* pass : {&impl_->forward, &impl_->backward}) {
    std::byte* at = impl_->parts.as<std::byte>();
    for (auto& [buffer, store] : pass->stores) {
      store.place(at);
      at += store.bytes();
    }
  }
  for (const Impl::Call& call : impl_->calls) {
    call.step->set_plan(impl_->plans[call.plan], impl_->plans.keeps_rows(call.plan));
    call.step->place(impl_->scratch);
  }
}

void KernelComputer::run(bool backward, int op, Stream stream) {
  const PassParts& pass = backward ? impl_->backward : impl_->forward;
  pass.steps.at(static_cast<std::size_t>(op))->run(stream);
}

bool KernelComputer::has_early(int op) const {
  return impl_->backward.steps.at(static_cast<std::size_t>(op))->has_early();
}

void KernelComputer::run_early(int op, Stream stream) {
  impl_->backward.steps.at(static_cast<std::size_t>(op))->run_early(stream);
}

std::int64_t KernelComputer::workspace_bytes() const {
  return impl_->plans.workspace_bytes() + impl_->scratch.bytes() + impl_->parts.bytes();
}

std::map<std::string, std::string> KernelComputer::notes() const {
  std::map<std::string, std::string> notes = impl_->plans.notes();
  const auto any = [&](Delivery delivery) {
    return std::ranges::find(impl_->deliveries, delivery) != impl_->deliveries.end();
  };
  if (any(Delivery::accumulate)) {
    notes["merging"] = "by the kernel";
  } else if (any(Delivery::late)) {
    notes["merging"] =
        impl_->merges_earlier
            ? "by the kernel's last call where two results meet, else after it, up to 4 in one pass"
            : std::string(kMergedInPasses);
  } else if (any(Delivery::partial)) {
    notes["merging"] = "after the kernel, in a pass per step";
  }
  if (impl_->sums_keys) notes["gradients of keys"] = "summed by the kernel, in float32";
  if (impl_->copies) notes["copies"] = "inputs of steps, made contiguous for the kernel";
  return notes;
}

double KernelComputer::compile_ms() const {
  return impl_->plans.compile_ms();
}

}  // namespace longca
