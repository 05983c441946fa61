#include "simulate/lower.h"

#include <algorithm>

#include "parallel/executor/op_analysis.h"

namespace longca::simulate {
namespace {

/// The seconds of one op's own work, without waiting.
class OpSeconds {
 public:
  OpSeconds(const RankPlan& plan, const OpTimes& times) : plan_(plan), times_(times) {}

  double operator()(const Exchange&) const { return 0; }
  double operator()(const Attend& a) const {
    const double call = call_seconds(a.mask, a.q, cost::Pass::forward);
    return call + (a.first ? 0 : memory(3 * bytes(a.q)));
  }
  double operator()(const AttendBackward& a) const {
    const double call = call_seconds(a.mask, a.q, cost::Pass::backward);
    const double sums = bytes(a.dk) + bytes(a.dv);
    return call + (a.first_dq ? 0 : memory(3 * bytes(a.q))) + (a.first_dkv ? 0 : memory(2 * sums));
  }
  double operator()(const Copy& c) const { return pass(bytes(c.from) + bytes(c.to)); }
  double operator()(const Add& a) const { return pass(bytes(a.from) + 2 * bytes(a.into)); }
  double operator()(const Convert& c) const { return pass(bytes(c.from) + bytes(c.to)); }
  double operator()(const Total& t) const {
    double moved = bytes(t.to);
    for (const Total::Part& part : t.parts) moved += bytes(part.from);
    return pass(moved);
  }
  double operator()(const Clear& c) const { return pass(bytes(c.region)); }

  double memory(double moved) const { return cost::memory_seconds(*times_.platform, moved); }
  /// The row work of a gradient step.
  double rows(const AttendBackward& a) const {
    const cost::HeadShape shape{static_cast<int>(a.q.heads.size()),
                                static_cast<int>(a.k.heads.size()), times_.head_dim,
                                static_cast<int>(size_of(times_.dtype))};
    return cost::row_term_seconds(*times_.platform, shape, static_cast<double>(a.q.tokens.size()));
  }

 private:
  double call_seconds(int mask, const Region& q, cost::Pass pass) const {
    const Mask& m = plan_.masks[static_cast<std::size_t>(mask)];
    return times_.kernel.of(pass).seconds(m.mean_area(), static_cast<double>(q.tokens.size()),
                                          static_cast<int>(q.heads.size()), times_.head_dim, pass);
  }
  double bytes(const Region& region) const {
    return static_cast<double>(region_bytes(plan_, region, times_.head_dim, times_.dtype));
  }
  /// A kernel that does nothing but read and write.
  double pass(double moved) const {
    return moved > 0 ? times_.platform->memory.seconds_per_copy + memory(moved) : 0;
  }

  const RankPlan& plan_;
  const OpTimes& times_;
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
  const OpSeconds seconds(plan, times);
  const OpRuns runs(plan, ops);
  const ExchangeTraits traits(ops);
  RankWork work;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const int index = static_cast<int>(i);
    TimedOp op{ops[i].lane, ops[i].step, std::visit(seconds, ops[i].what), ops[i].after};
    // One kernel does the run: only the first is another launch.
    if (op.seconds > 0 && runs.first(index) != index) {
      op.seconds -= times.platform->memory.seconds_per_copy;
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
