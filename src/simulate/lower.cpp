#include "simulate/lower.h"

#include <algorithm>
#include <map>

#include "parallel/executor/late_merging.h"
#include "parallel/executor/merge_queue.h"
#include "parallel/executor/op_analysis.h"
#include "parallel/executor/step_math.h"

namespace longca::simulate {
namespace {

constexpr double kSumBytes = 4;  ///< of an element of a sum

/// Ops' calls of the kernel, by op; 0 of other ops.
std::vector<CallTime> kernel_calls(const RankPlan& plan, const std::vector<Op>& ops,
                                   const OpTimes& times) {
  std::vector<CallTime> calls;
  double sum = 0;
  cost::Pass pass = cost::Pass::forward;
  const auto call = [&](int mask, const Region& q, const Region& k) {
    const cost::HeadShape shape{static_cast<int>(q.heads.size()), static_cast<int>(k.heads.size()),
                                times.head_dim, static_cast<int>(size_of(times.dtype))};
    return times.kernel->call(plan.masks[static_cast<std::size_t>(mask)], shape, pass);
  };
  for (const Op& op : ops) {
    CallTime taken;
    if (const auto* a = std::get_if<Attend>(&op.what)) {
      taken = call(a->mask, a->q, a->k);
    } else if (const auto* b = std::get_if<AttendBackward>(&op.what)) {
      pass = cost::Pass::backward;
      taken = call(b->mask, b->q, b->k);
    }
    if (times.sustained && taken.seconds > 0) taken.seconds -= times.kernel->hidden_seconds(pass);
    calls.push_back(taken);
    sum += taken.seconds;
  }
  if (times.sustained || sum == 0) return calls;
  const double slower = times.kernel->slowdown(sum, pass);
  for (CallTime& taken : calls) taken.seconds *= slower;
  return calls;
}

/// The seconds of one op's own work, without waiting and without the kernel's. Takes the ops in
/// their order.
class OpSeconds {
 public:
  OpSeconds(const RankPlan& plan, const std::vector<Op>& ops, const OpTimes& times)
      : plan_(plan), times_(times), late_(plan, ops, false) {}

  double operator()(const Exchange&) { return 0; }
  double operator()(const Attend& a) {
    if (late_.allowed(a.o.buffer)) {
      // The kernel loads the earlier part while it computes.
      return times_.merges_earlier && merged_by_kernel(a.o, true) > 0 ? 0 : make_room(a.o);
    }
    return a.first ? 0 : memory(3 * bytes(a.q));
  }
  double operator()(const AttendBackward& a) {
    const double sums = a.first_dkv ? 0 : memory(2 * (bytes(a.dk) + bytes(a.dv)));
    if (late_.allowed(a.dq.buffer)) {
      const double held = times_.adds_to_dq ? merged_by_kernel(a.dq, false) : 0;
      if (held > 0) return sums + memory(held * static_cast<double>(size_of(times_.dtype)));
      return sums + make_room(a.dq);
    }
    return sums + (a.first_dq ? 0 : memory(3 * bytes(a.q)));
  }
  double operator()(const Copy& c) const { return pass(bytes(c.from) + bytes(c.to)); }
  double operator()(const Add& a) const { return pass(bytes(a.from) + 2 * bytes(a.into)); }
  double operator()(const Convert& c) {
    return late_.allowed(c.from.buffer) ? deliver(c) : pass(bytes(c.from) + bytes(c.to));
  }
  double operator()(const Total& t) const {
    double moved = bytes(t.to);
    for (const Total::Part& part : t.parts) moved += bytes(part.from);
    return pass(moved);
  }
  double operator()(const Clear& c) const {
    return late_.allowed(c.region.buffer) ? 0 : pass(bytes(c.region));
  }
  double operator()(const JoinSinks& j) const { return pass(2 * bytes(j.o)); }
  double operator()(const SinkGradients& g) const { return pass(bytes(g.dout) + bytes(g.o)); }

  double memory(double moved) const { return cost::memory_seconds(*times_.platform, moved); }
  /// The row work of a gradient step.
  double rows(const AttendBackward& a) const {
    const cost::HeadShape shape{static_cast<int>(a.q.heads.size()),
                                static_cast<int>(a.k.heads.size()), times_.head_dim,
                                static_cast<int>(size_of(times_.dtype))};
    return cost::row_term_seconds(*times_.platform, shape, static_cast<double>(a.q.tokens.size()));
  }

 private:
  double bytes(const Region& region) const {
    return static_cast<double>(region_bytes(plan_, region, times_.head_dim, times_.dtype));
  }
  MergeQueue& queue_of(int buffer) {
    return queues_.try_emplace(buffer, static_cast<int>(StepMath::kMaxParts)).first->second;
  }
  /// A kernel that reads the parts in the problem's dtype and what was accumulated in float32.
  double merge(const MergeCall& call, double result_bytes) const {
    const auto elements =
        static_cast<double>(call.box.rows.size() * call.box.heads.size() * times_.head_dim);
    const auto parts =
        static_cast<double>(std::ssize(call.parts)) * static_cast<double>(size_of(times_.dtype));
    return pass(elements * (parts + (call.accumulator ? kSumBytes : 0) + result_bytes));
  }
  /// The elements of `region` of which a kernel merges the earlier part (LateMerging::join).
  double merged_by_kernel(const Region& region, bool whole) {
    const auto joint = late_.join(queue_of(region.buffer), region, whole);
    if (!joint) return 0;
    const Box& held = joint->held;
    return static_cast<double>(held.rows.size() * held.heads.size() * times_.head_dim);
  }
  /// Merges of earlier parts that free a slot for another one.
  double make_room(const Region& region) {
    double seconds = 0;
    for (const MergeCall& call :
         queue_of(region.buffer).add({region.tokens, region.heads}).before) {
      seconds += merge(call, kSumBytes);
    }
    return seconds;
  }
  /// Merges of what waits into the result, unless it is there.
  double deliver(const Convert& convert) {
    const bool through = late_.has_one_place(convert.from.buffer);
    double seconds = 0;
    for (const MergeCall& call :
         queue_of(convert.from.buffer).finish({convert.from.tokens, convert.from.heads})) {
      if (!through || !is_in_place(call)) {
        seconds += merge(call, static_cast<double>(size_of(times_.dtype)));
      }
    }
    return seconds;
  }
  /// A kernel that does nothing but read and write.
  double pass(double moved) const {
    return moved > 0 ? times_.platform->memory.seconds_per_copy + memory(moved) : 0;
  }

  const RankPlan& plan_;
  const OpTimes& times_;
  LateMerging late_;
  std::map<int, MergeQueue> queues_;  ///< by buffer that is merged late
};

TensorRole role_of(const RankPlan& plan, const Message& message) {
  return plan.buffers[static_cast<std::size_t>(message.region.buffer)].role;
}

/// Whether a message leaves as a second row of the copy of the one before it.
bool joins_previous(const RankPlan& plan, const Message& previous, const Message& message) {
  const TensorRole role = role_of(plan, message);
  if (role != TensorRole::v && role != TensorRole::dv) return false;
  return previous.peer == message.peer &&
         previous.region.tokens.size() == message.region.tokens.size() &&
         previous.region.heads.size() == message.region.heads.size() &&
         role_of(plan, previous) == (role == TensorRole::v ? TensorRole::k : TensorRole::dk);
}

std::vector<TimedMessage> lower_messages(const RankPlan& plan, const std::vector<Message>& messages,
                                         const OpTimes& times) {
  std::vector<TimedMessage> lowered;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Message& m = messages[i];
    lowered.push_back({m.peer, region_bytes(plan, m.region, times.head_dim, times.dtype),
                       role_of(plan, m), i > 0 && joins_previous(plan, messages[i - 1], m)});
  }
  return lowered;
}

}  // namespace

RankWork lower(const RankPlan& plan, bool backward, const OpTimes& times) {
  const std::vector<Op>& ops = backward ? plan.backward : plan.forward;
  OpSeconds seconds(plan, ops, times);
  const std::vector<CallTime> calls = kernel_calls(plan, ops, times);
  const OpRuns runs(plan, ops);
  const ExchangeTraits traits(ops);
  RankWork work;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const int index = static_cast<int>(i);
    TimedOp op{ops[i].lane, ops[i].step, calls[i].seconds + std::visit(seconds, ops[i].what),
               calls[i].cycle_seconds, ops[i].after};
    work.busy_seconds += calls[i].busy_seconds;
    // One kernel does the run, with its first op.
    if (const int first = runs.first(index); op.seconds > 0 && first != index) {
      work.ops[static_cast<std::size_t>(first)].seconds +=
          op.seconds - times.platform->memory.seconds_per_copy;
      op.seconds = 0;
    }
    if (const auto* exchange = std::get_if<Exchange>(&ops[i].what)) {
      if (!exchange->sends.empty() || !exchange->receives.empty()) {
        op.exchange = static_cast<int>(work.exchanges.size());
        work.exchanges.push_back({index, traits.lands_early(i), traits.is_alone(i),
                                  lower_messages(plan, exchange->sends, times),
                                  lower_messages(plan, exchange->receives, times)});
      }
    }
    work.ops.push_back(std::move(op));
  }
  if (!backward) return work;
  const EarlyRows early = find_early_rows(ops);
  if (!early.ops.empty()) work.early_before = static_cast<int>(early.before);
  for (const int index : early.ops) {
    TimedOp& op = work.ops[static_cast<std::size_t>(index)];
    const auto& step = std::get<AttendBackward>(ops[static_cast<std::size_t>(index)].what);
    const double rows = std::min(seconds.rows(step), op.seconds);
    op.seconds -= rows;
    work.early_seconds += rows;
  }
  return work;
}

}  // namespace longca::simulate
