#include "simulate/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <string>
#include <tuple>

#include "core/error.h"
#include "simulate/fluid_links.h"
#include "simulate/routes.h"

namespace longca::simulate {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

struct Event {
  double time = 0;
  std::int64_t order = 0;  ///< of events at one time: the first scheduled comes first
  enum class What : std::uint8_t {
    pass_starts,
    op_ends,
    exchange_goes,
    message_starts,
    flow_ends
  } what{};
  int index = 0;  ///< rank; rank × 2 + lane; exchange; message; message
  std::uint32_t version = 0;

  bool operator>(const Event& other) const {
    return std::tie(time, order) > std::tie(other.time, other.order);
  }
};

/// A lane of a rank: its ops one after the other.
struct RunningLane {
  std::vector<int> queue;  ///< ops, and kEarlyRows
  std::size_t next = 0;
  bool busy = false;
  double work = 0;  ///< seconds of the running op that are left at `since`, at full rate
  double rate = 1;
  double since = 0;
  std::uint32_t version = 0;
};

struct RunningRank {
  std::array<RunningLane, 2> lanes;
  std::vector<bool> ended;
  std::array<int, 2> moving = {0, 0};  ///< messages on NVLink and on NICs, either direction
};

/// Messages of an exchange that leave one after the other: by the copy engine, by the NIC.
struct SendQueue {
  std::vector<int> messages;
  std::size_t next = 0;
};

struct RunningExchange {
  std::array<SendQueue, 2> queues;  ///< within the node, across nodes
  bool posted = false;
  int grants = 0;  ///< receivers that have not granted it yet
  int sends = 0;   ///< messages that have not left yet
  int receives = 0;
  int last = -1;
};

class Simulation {
 public:
  Simulation(const Program& program, const Cluster& cluster, Exchanges exchanges,
             std::span<const double> starts)
      : program_(program),
        cluster_(cluster),
        skips_(exchanges == Exchanges::skip),
        routes_(cluster, static_cast<int>(program.ranks.size()), links_) {
    pass_.starts.assign(starts.begin(), starts.end());
    pass_.starts.resize(program.ranks.size());
    prepare_ranks();
    if (!skips_) prepare_exchanges();
  }

  SimulatedPass run() {
    for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
      schedule(pass_.starts[at(rank)], Event::What::pass_starts, rank);
    }
    while (!events_.empty()) {
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time <= now_) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      links_.settle(now_, [this](int message, double end) {
        schedule(end, Event::What::flow_ends, message, ++flow_versions_[at(message)]);
      });
    }
    check_ended();
    return std::move(pass_);
  }

 private:
  void prepare_ranks() {
    ranks_.resize(program_.ranks.size());
    pass_.spans.resize(program_.ranks.size());
    pass_.early.resize(program_.ranks.size());
    pass_.bytes_sent.assign(program_.ranks.size(), 0);
    pass_.ends = pass_.starts;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const RankWork& work = program_.ranks[rank];
      ranks_[rank].ended.assign(work.ops.size(), false);
      pass_.spans[rank].resize(work.ops.size());
      for (int op = 0; op < std::ssize(work.ops); ++op) {
        if (op == work.early_before) ranks_[rank].lanes[0].queue.push_back(kEarlyRows);
        ranks_[rank].lanes[at(static_cast<int>(work.ops[at(op)].lane))].queue.push_back(op);
      }
    }
  }

  void prepare_exchanges() {
    for (const LinkedMessage& m : program_.messages) {
      const int from = program_.exchanges[at(m.from)].rank;
      const int to = program_.exchanges[at(m.to)].rank;
      links_.add_flow(routes_.path(from, to), static_cast<double>(m.bytes));
    }
    flow_versions_.resize(program_.messages.size());
    pass_.arrivals.resize(program_.messages.size());
    exchanges_.resize(program_.exchanges.size());
    for (std::size_t i = 0; i < exchanges_.size(); ++i) {
      const LinkedExchange& linked = program_.exchanges[i];
      RunningExchange& running = exchanges_[i];
      running.sends = static_cast<int>(linked.sends.size());
      running.receives = linked.receives;
      for (const int receiver : linked.receivers) {
        const LinkedExchange& to = program_.exchanges[at(receiver)];
        if (!to.lands_early || starts_after(to.rank, linked.rank)) ++running.grants;
      }
      for (const int m : linked.sends) running.queues[across(m)].messages.push_back(m);
      const auto order = [&](int m) { return routes_.order(linked.rank, receiver_rank(m)); };
      for (SendQueue& queue : running.queues) std::ranges::stable_sort(queue.messages, {}, order);
    }
  }

  bool starts_after(int rank, int other) const {
    return pass_.starts[at(rank)] > pass_.starts[at(other)];
  }

  /// A rank's pass begins: exchanges that land early are granted, to ranks that began before too.
  void start_pass(int rank) {
    for (const TimedOp& op : program_.ranks[at(rank)].ops) {
      if (skips_ || op.exchange < 0 || !program_.exchanges[at(op.exchange)].lands_early) continue;
      for (const int sender : program_.exchanges[at(op.exchange)].senders) {
        if (starts_after(rank, program_.exchanges[at(sender)].rank)) grant(sender);
      }
    }
    start_lanes(rank);
  }

  int receiver_rank(int message) const {
    return program_.exchanges[at(program_.messages[at(message)].to)].rank;
  }
  int sender_rank(int message) const {
    return program_.exchanges[at(program_.messages[at(message)].from)].rank;
  }
  /// 1 for a message between nodes, else 0.
  std::size_t across(int message) const {
    return routes_.crosses(sender_rank(message), receiver_rank(message)) ? 1 : 0;
  }

  void schedule(double time, Event::What what, int index, std::uint32_t version = 0) {
    events_.push({time, scheduled_++, what, index, version});
  }

  void handle(const Event& event) {
    switch (event.what) {
      case Event::What::pass_starts:
        return start_pass(event.index);
      case Event::What::op_ends: {
        const RunningLane& lane = ranks_[at(event.index / 2)].lanes[at(event.index % 2)];
        if (event.version == lane.version) end_op(event.index / 2, event.index % 2);
        return;
      }
      case Event::What::exchange_goes:
        return go(event.index);
      case Event::What::message_starts:
        return start_message(event.index);
      case Event::What::flow_ends:
        if (event.version == flow_versions_[at(event.index)]) end_message(event.index);
    }
  }

  /// The latest of what `op` waits for, kPassStart for nothing; none if one of it has not ended.
  std::optional<int> latest_before(int rank, int lane, int op) const {
    const RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
    int latest = kPassStart;
    const auto offer = [&](int before) {
      if (latest == kPassStart ||
          pass_.span({rank, before}).end >= pass_.span({rank, latest}).end) {
        latest = before;
      }
    };
    if (running.next > 0) offer(running.queue[running.next - 1]);
    if (op == kEarlyRows) return latest;
    for (const int before : program_.ranks[at(rank)].ops[at(op)].after) {
      if (!ranks_[at(rank)].ended[at(before)]) return std::nullopt;
      offer(before);
    }
    return latest;
  }

  void start_lanes(int rank) {
    for (const int lane : {0, 1}) {
      RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
      if (running.busy || running.next == running.queue.size()) continue;
      const int op = running.queue[running.next];
      if (const auto cause = latest_before(rank, lane, op)) start_op(rank, lane, op, *cause);
    }
  }

  OpSpan& span(int rank, int op) {
    return op == kEarlyRows ? pass_.early[at(rank)] : pass_.spans[at(rank)][at(op)];
  }

  void start_op(int rank, int lane, int op, int cause) {
    span(rank, op) = {.begin = now_, .cause = cause};
    RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
    running.busy = true;
    const RankWork& work = program_.ranks[at(rank)];
    const int exchange = op == kEarlyRows ? -1 : work.ops[at(op)].exchange;
    if (exchange >= 0 && !skips_) return post(exchange);
    running.work = op == kEarlyRows ? work.early_seconds : work.ops[at(op)].seconds;
    running.since = now_;
    running.rate = lane == 0 ? kernel_rate(rank, op) : 1;
    schedule_end(rank, lane);
  }

  void schedule_end(int rank, int lane) {
    RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
    schedule(now_ + running.work / running.rate, Event::What::op_ends, rank * 2 + lane,
             ++running.version);
  }

  void end_op(int rank, int lane) {
    RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
    const int op = running.queue[running.next];
    span(rank, op).end = now_;
    if (op != kEarlyRows) ranks_[at(rank)].ended[at(op)] = true;
    pass_.ends[at(rank)] = now_;
    running.busy = false;
    ++running.next;
    start_lanes(rank);
  }

  /// Whether the op reads and writes memory and does little else.
  bool is_memory_pass(int rank, int op) const {
    return op == kEarlyRows || program_.ranks[at(rank)].ops[at(op)].cycle_seconds == 0;
  }

  /// What messages beside it leave of an op's rate.
  double kernel_rate(int rank, int op) const {
    const std::array<int, 2>& moving = ranks_[at(rank)].moving;
    const cost::NodeSize& node = cluster_.platform.node;
    const double within =
        is_memory_pass(rank, op) ? node.memory_slowdown_within : node.covered_cost_within;
    double taken = moving[0] > 0 ? within : 0;
    if (moving[1] > 0) taken = std::max(taken, cluster_.fabric->kernel_slowdown);
    return 1 - taken;
  }

  void count_moving(int rank, std::size_t kind, int change) {
    ranks_[at(rank)].moving[kind] += change;
    RunningLane& lane = ranks_[at(rank)].lanes[0];
    if (!lane.busy || computes_exchange(lane, rank)) return;
    const double rate = kernel_rate(rank, lane.queue[lane.next]);
    if (rate == lane.rate) return;
    lane.work = std::max(lane.work - (now_ - lane.since) * lane.rate, 0.0);
    lane.since = now_;
    lane.rate = rate;
    schedule_end(rank, 0);
  }

  bool computes_exchange(const RunningLane& lane, int rank) const {
    const int op = lane.queue[lane.next];
    return op != kEarlyRows && program_.ranks[at(rank)].ops[at(op)].exchange >= 0;
  }

  /// The rank has reached the exchange: it grants its receives, and sends once it is granted all.
  void post(int exchange) {
    RunningExchange& running = exchanges_[at(exchange)];
    const LinkedExchange& linked = program_.exchanges[at(exchange)];
    running.posted = true;
    if (!linked.lands_early) {
      for (const int sender : linked.senders) grant(sender);
    }
    if (running.grants == 0) let_go(exchange);
    finish_if_done(exchange);
  }

  void grant(int sender) {
    if (--exchanges_[at(sender)].grants == 0) let_go(sender);
  }

  void let_go(int exchange) {
    const RunningExchange& running = exchanges_[at(exchange)];
    if (!running.posted || running.sends == 0) return;
    const int rank = program_.exchanges[at(exchange)].rank;
    const double begin =
        std::max(now_, pass_.starts[at(rank)] + cluster_.platform.links.seconds_to_begin);
    const bool leaves_node = !running.queues[1].messages.empty();
    const double latency = leaves_node ? cluster_.fabric->seconds_per_exchange
                                       : cluster_.platform.links.seconds_per_exchange;
    schedule(begin + latency, Event::What::exchange_goes, exchange);
  }

  void go(int exchange) {
    RunningExchange& running = exchanges_[at(exchange)];
    if (program_.exchanges[at(exchange)].alone) {
      for (const int message : running.queues[0].messages) start_message(message);
      running.queues[0].next = running.queues[0].messages.size();
    }
    for (SendQueue& queue : running.queues) send_next(queue, false);
  }

  /// Starts the queue's next message, after the time that each message but the first one takes.
  void send_next(SendQueue& queue, bool is_later) {
    if (queue.next == queue.messages.size()) return;
    const int message = queue.messages[queue.next++];
    const int gaps = program_.messages[at(message)].copies - (is_later ? 0 : 1);
    const double gap = across(message) == 1 ? cluster_.fabric->seconds_per_message
                                            : cluster_.platform.links.seconds_per_message;
    schedule(now_ + gaps * gap, Event::What::message_starts, message);
  }

  void start_message(int message) {
    links_.start(message);
    count_moving(sender_rank(message), across(message), 1);
    count_moving(receiver_rank(message), across(message), 1);
  }

  void end_message(int message) {
    const LinkedMessage& m = program_.messages[at(message)];
    links_.finish(message);
    ++flow_versions_[at(message)];
    count_moving(sender_rank(message), across(message), -1);
    count_moving(receiver_rank(message), across(message), -1);
    pass_.bytes_sent[at(sender_rank(message))] += m.bytes;
    pass_.arrivals[at(message)] = now_;
    RunningExchange& from = exchanges_[at(m.from)];
    RunningExchange& to = exchanges_[at(m.to)];
    --from.sends;
    --to.receives;
    from.last = to.last = message;
    send_next(from.queues[across(message)], true);
    finish_if_done(m.from);
    finish_if_done(m.to);
  }

  void finish_if_done(int exchange) {
    const RunningExchange& running = exchanges_[at(exchange)];
    if (!running.posted || running.sends > 0 || running.receives > 0) return;
    const LinkedExchange& linked = program_.exchanges[at(exchange)];
    const int lane = static_cast<int>(program_.ranks[at(linked.rank)].ops[at(linked.op)].lane);
    span(linked.rank, linked.op).last = running.last;
    schedule(now_, Event::What::op_ends, linked.rank * 2 + lane,
             ++ranks_[at(linked.rank)].lanes[at(lane)].version);
  }

  /// "rank 0 waits in op 3 for rank 1, …" of the first rank that has not ended, and so on in turn.
  void check_ended() const {
    std::string waits;
    std::vector<bool> named(ranks_.size());
    int rank = -1;
    for (int r = 0; r < std::ssize(ranks_) && rank < 0; ++r) {
      if (stuck_op(r) >= 0) rank = r;
    }
    if (rank < 0) return;
    while (rank >= 0 && !named[at(rank)]) {
      named[at(rank)] = true;
      const int op = stuck_op(rank);
      const int peer = awaited_rank(rank, op);
      waits += fmt::format("rank {} waits in op {}", rank, op);
      if (peer >= 0) waits += fmt::format(" for rank {}", peer);
      waits += "; ";
      rank = peer;
    }
    throw InternalError("deadlock: " + waits.substr(0, waits.size() - 2));
  }

  /// The op that a rank stands still at, preferably an exchange; −1: it has ended.
  int stuck_op(int rank) const {
    for (const int lane : {1, 0}) {
      const RunningLane& running = ranks_[at(rank)].lanes[at(lane)];
      if (running.next < running.queue.size()) return running.queue[running.next];
    }
    return -1;
  }

  /// A rank whose half of the exchange has not begun, −1 if there is none.
  int awaited_rank(int rank, int op) const {
    const int exchange = op == kEarlyRows ? -1 : program_.ranks[at(rank)].ops[at(op)].exchange;
    if (exchange < 0 || skips_) return -1;
    const LinkedExchange& linked = program_.exchanges[at(exchange)];
    for (const std::vector<int>* peers : {&linked.receivers, &linked.senders}) {
      for (const int peer : *peers) {
        if (!exchanges_[at(peer)].posted) return program_.exchanges[at(peer)].rank;
      }
    }
    return -1;
  }

  const Program& program_;
  const Cluster& cluster_;
  bool skips_;
  FluidLinks links_;  ///< its flows have the messages' numbers
  Routes routes_;
  std::vector<RunningRank> ranks_;
  std::vector<RunningExchange> exchanges_;
  std::vector<std::uint32_t> flow_versions_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t scheduled_ = 0;
  double now_ = 0;
  SimulatedPass pass_;
};

}  // namespace

double SimulatedPass::end() const {
  return ends.empty() ? 0 : *std::ranges::max_element(ends);
}

int SimulatedPass::slowest() const {
  return static_cast<int>(std::ranges::max_element(ends) - ends.begin());
}

const OpSpan& SimulatedPass::span(OpPlace place) const {
  return place.op == kEarlyRows ? early[at(place.rank)] : spans[at(place.rank)][at(place.op)];
}

SimulatedPass run(const Program& program, const Cluster& cluster, Exchanges exchanges,
                  std::span<const double> starts) {
  cluster.require_ranks(std::ssize(program.ranks));
  return Simulation(program, cluster, exchanges, starts).run();
}

std::vector<OpTime> trace_times(const SimulatedPass& pass, int rank) {
  std::vector<OpTime> times;
  const auto add = [&](int op, const OpSpan& span) {
    if (span.end > span.begin) times.push_back({op, span.begin * 1e3, span.end * 1e3});
  };
  add(kEarlyRows, pass.early[at(rank)]);
  for (int op = 0; op < std::ssize(pass.spans[at(rank)]); ++op) {
    add(op, pass.spans[at(rank)][at(op)]);
  }
  return times;
}

}  // namespace longca::simulate
