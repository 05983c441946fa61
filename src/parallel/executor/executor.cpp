#include "parallel/executor/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/error.h"
#include "parallel/executor/op_analysis.h"
#include "parallel/executor/plan_memory.h"
#include "parallel/plan/explain.h"

namespace longca {
namespace {

/// The synchronisation around one op.
struct OpSync {
  std::optional<int> group;  ///< an exchange with messages: its number in the communicator
  std::vector<int> waits;    ///< ops of the other lane to wait for
  bool marked = false;       ///< an op of the other lane waits for it
  int finish_to = -1;        ///< the host first finishes the exchanges up to this op; −1: none
};

bool is_exchange(const Op& op) {
  return std::holds_alternative<Exchange>(op.what);
}

void set_waits(const std::vector<Op>& ops, std::vector<OpSync>& syncs) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const int named : ops[i].after) {
      const auto earlier = static_cast<std::size_t>(named);
      LONGCA_CHECK(named >= 0 && earlier < i, "op {} comes after op {}", i, named);
      if (ops[earlier].lane == ops[i].lane) continue;
      syncs[i].waits.push_back(named);
      syncs[earlier].marked = true;
    }
  }
}

/// Sets finish_to. The host finishes an exchange (on the CPU, where Communicator::finish blocks) as
/// late as possible: before an op that waits for it or for a later op of its lane, or an op of its
/// lane that touches its buffers. Other ops overtake it, so that outgoing results do not delay the
/// next inputs.
void set_finish_to(const std::vector<Op>& ops, std::vector<OpSync>& syncs) {
  std::vector<std::pair<int, OpRegions>> pending;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    int& finish_to = syncs[i].finish_to;
    for (const int named : ops[i].after) {
      if (ops[static_cast<std::size_t>(named)].lane == Lane::communication) {
        finish_to = std::max(finish_to, named);
      }
    }
    if (ops[i].lane == Lane::communication) {
      OpRegions regions = regions_of(ops[i]);
      for (const auto& [op, moved] : pending) {
        if (op > finish_to && conflict(regions, moved)) finish_to = op;
      }
      if (is_exchange(ops[i])) pending.emplace_back(static_cast<int>(i), std::move(regions));
    }
    std::erase_if(pending, [&](const auto& p) { return p.first <= finish_to; });
  }
}

}  // namespace

struct Executor::Impl {
  const RankPlan& plan;
  Communicator& communicator;
  StepComputer& computer;
  PlanMemory memory;
  std::unique_ptr<DeviceLanes> lanes;
  std::vector<OpSync> forward, backward;             ///< by op
  std::vector<int> forward_groups, backward_groups;  ///< the communicator's numbers, in order
  EarlyRows early;                                   ///< of the backward pass
  Support support;

  Impl(const RankPlan& the_plan, const Problem& problem, const RankTensors& tensors,
       Communicator& the_communicator, StepComputer& the_computer)
      : plan(the_plan),
        communicator(the_communicator),
        computer(the_computer),
        memory(plan, problem, tensors, communicator),
        lanes(make_device_lanes(problem.device)),
        forward(prepare_exchanges(plan.forward)),
        backward(prepare_exchanges(plan.backward)),
        forward_groups(groups_of(forward)),
        backward_groups(groups_of(backward)),
        early(find_early_rows(plan.backward)) {
    // All exchanges are prepared: that is collective, and from here on a single rank may refuse.
    prepare_computing(false);
    if (support.ok()) prepare_computing(true);
    if (!support.ok()) return;
    for (const int op : early.ops) computer.expect_early(op);
    computer.ready();
    std::erase_if(early.ops, [&](int op) { return !computer.has_early(op); });
  }

  std::vector<OpSync> prepare_exchanges(const std::vector<Op>& ops) {
    std::vector<OpSync> syncs(ops.size());
    const ExchangeTraits traits(ops);
    std::vector<TransferGroup> groups;
    std::vector<std::size_t> of_op;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&ops[i].what);
      if (exchange == nullptr) continue;
      TransferGroup group = memory.transfers(*exchange);
      if (group.sends.empty() && group.receives.empty()) continue;
      group.alone = traits.is_alone(i);
      group.lands_early = traits.lands_early(i);
      groups.push_back(std::move(group));
      of_op.push_back(i);
    }
    const std::vector<int> numbers = communicator.prepare_all(groups);
    for (std::size_t i = 0; i < numbers.size(); ++i) syncs[of_op[i]].group = numbers[i];
    set_waits(ops, syncs);
    set_finish_to(ops, syncs);
    return syncs;
  }

  static std::vector<int> groups_of(const std::vector<OpSync>& syncs) {
    std::vector<int> groups;
    for (const OpSync& sync : syncs) {
      if (sync.group) groups.push_back(*sync.group);
    }
    return groups;
  }

  void prepare_computing(bool is_backward) {
    const std::vector<Op>& ops = is_backward ? plan.backward : plan.forward;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (is_exchange(ops[i])) continue;
      const Support said =
          computer.prepare(plan, is_backward, static_cast<int>(i), memory.views(ops[i]));
      if (said.ok()) continue;
      support = {said.code, fmt::format("{}: {}", name_step(plan, ops[i]), said.reason)};
      return;
    }
  }

  void run_early(LaneTimes* times) {
    if (early.ops.empty()) return;
    const Stream stream = lanes->stream(Lane::compute);
    if (times) times->begins(kEarlyRows, stream);
    for (const int op : early.ops) computer.run_early(op, stream);
    if (times) times->ends(kEarlyRows, stream);
  }

  void run(bool is_backward, Stream stream, bool communicate, LaneTimes* times) {
    LONGCA_CHECK(support.ok(), "a refused plan is run: {}", support.reason);
    const std::vector<Op>& ops = is_backward ? plan.backward : plan.forward;
    const std::vector<OpSync>& syncs = is_backward ? backward : forward;
    std::size_t finished = 0;  // the exchanges before this op are
    const auto finish_before = [&](std::size_t end) {
      for (; finished < end; ++finished) {
        if (!communicate || !syncs[finished].group) continue;
        communicator.finish(*syncs[finished].group);
        if (times && times->exchanges_end_on_host()) {
          times->ends(static_cast<int>(finished), lanes->stream(Lane::communication));
        }
      }
    };
    if (times) times->restart(stream);
    lanes->begin(stream);
    if (communicate) {
      communicator.expect(is_backward ? backward_groups : forward_groups,
                          lanes->stream(Lane::communication));
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Lane lane = ops[i].lane;
      if (is_backward && i == early.before) run_early(times);
      finish_before(static_cast<std::size_t>(std::int64_t{syncs[i].finish_to} + 1));
      const int op = static_cast<int>(i);
      for (const int before : syncs[i].waits) lanes->wait(before, lane);
      if (!is_exchange(ops[i])) {
        if (times) times->begins(op, lanes->stream(lane));
        computer.run(is_backward, op, lanes->stream(lane));
        if (times) times->ends(op, lanes->stream(lane));
        if (communicate) communicator.progress();
      } else if (communicate && syncs[i].group) {
        if (times) times->begins(op, lanes->stream(lane));
        communicator.start(*syncs[i].group, lanes->stream(lane));
        if (times && !times->exchanges_end_on_host()) times->ends(op, lanes->stream(lane));
      }
      if (syncs[i].marked) lanes->mark(op, lane);
    }
    finish_before(ops.size());
    lanes->end();
    if (times) times->finish(stream);
  }
};

Executor::Executor(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
                   Communicator& communicator, StepComputer& computer)
    : impl_(std::make_unique<Impl>(plan, problem, tensors, communicator, computer)) {}

Executor::~Executor() = default;

const Support& Executor::support() const {
  return impl_->support;
}

void Executor::forward(Stream stream, bool communicate, LaneTimes* times) {
  impl_->run(false, stream, communicate, times);
}

void Executor::backward(Stream stream, bool communicate, LaneTimes* times) {
  impl_->run(true, stream, communicate, times);
}

TensorView Executor::result(const Placement& placement) const {
  return impl_->memory.tensor(placement.region);
}

LseView Executor::lse_result(const Placement& placement) const {
  return impl_->memory.lse(placement.region);
}

std::int64_t Executor::buffer_bytes() const {
  return impl_->memory.bytes();
}

}  // namespace longca
