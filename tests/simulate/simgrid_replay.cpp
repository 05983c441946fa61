#include "simulate/simgrid_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <simgrid/s4u.hpp>
#include <string>

#include "core/error.h"
#include "simulate/fluid_links.h"
#include "simulate/routes.h"
#include "simulate/simgrid_hosts.h"

namespace longca::simulate::testing {
namespace {

namespace s4u = simgrid::s4u;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

/// Fluid max-min fairness alone: no factors, no latency, no windows, no weights by round-trip time,
/// no acknowledgements on the way back.
std::vector<std::string> simgrid_options() {
  return {"simgrid",
          "--cfg=network/model:CM02",
          "--cfg=network/bandwidth-factor:1",
          "--cfg=network/latency-factor:1",
          "--cfg=network/weight-S:0",
          "--cfg=network/TCP-gamma:0",
          "--cfg=network/crosstraffic:0",
          fmt::format("--cfg=surf/precision:{}", kSimgridPrecision),
          fmt::format("--cfg=maxmin/precision:{}", kSimgridPrecision),
          "--log=root.thresh:warning"};
}

/// Something that ends, and what waits for that: work or time on a host, or a message.
struct Step {
  s4u::Host* host = nullptr;
  s4u::Host* to = nullptr;  ///< of a message; work of 0 without it ends as it starts
  double work = 0;          ///< seconds, bytes
  int waits = 0;            ///< steps that have to end before
  std::vector<Step*> then{};
  double end = -1;
  s4u::ActivityPtr activity{};
  Step* paced =
      nullptr;  ///< a step that is to end at `paced_end`, and that `then` waits for instead
  double paced_end = 0;
  bool follows = false;  ///< begins with the step that it paces
  int change = 0;        ///< its end changes the messages in flight of `sender` and `receiver`
  std::size_t across = 0;
  RankHosts* sender = nullptr;
  RankHosts* receiver = nullptr;
};

void start(Step& step);

/// SimGrid searches a list of all activities at the end of each: those that wait are not made yet.
void end(Step& step) {
  step.end = s4u::Engine::get_clock();
  if (step.change != 0) {
    step.sender->count_moving(step.across, step.change);
    step.receiver->count_moving(step.across, step.change);
  }
  for (Step* next : step.then) {
    if (--next->waits == 0) start(*next);
  }
}

void start(Step& step) {
  if (step.paced != nullptr) {
    step.paced->work = std::max(step.paced_end - s4u::Engine::get_clock(), 0.0);
    start(*step.paced);
  }
  if (step.to == nullptr && step.work == 0) return end(step);
  if (step.to != nullptr) {
    const s4u::CommPtr comm = s4u::Comm::sendto_init(step.host, step.to);
    comm->set_payload_size(static_cast<std::uint64_t>(step.work));
    step.activity = comm;
  } else {
    const s4u::ExecPtr exec = s4u::Exec::init();
    exec->set_flops_amount(step.work);
    exec->set_host(step.host);
    step.activity = exec;
  }
  step.activity->set_data(&step);
  step.activity->start();
}

/// A pass as steps, which begins at `begin` of SimGrid's clock.
class PassSteps {
 public:
  PassSteps(const Program& program, const Cluster& cluster, const SimulatedPass* followed,
            double begin, s4u::NetZone& zone)
      : program_(program),
        cluster_(cluster),
        followed_(followed),
        begin_(begin),
        routes_(cluster_, static_cast<int>(program_.ranks.size()), unused_links_),
        hosts_(cluster_, static_cast<int>(program_.ranks.size()), zone),
        first_exchange_(&wait_on(0, cluster_.platform.links.seconds_to_begin)),
        messages_(program_.messages.size()) {
    for (auto* of_exchanges : {&posted_, &done_}) {
      for (std::size_t i = 0; i < program_.exchanges.size(); ++i) of_exchanges->push_back(&add({}));
    }
    for (int rank = 0; rank < std::ssize(program_.ranks); ++rank) add_ops(rank);
    for (int i = 0; i < std::ssize(program_.exchanges); ++i) add_messages(i);
  }

  void start_all() {
    std::vector<Step*> first;
    for (Step& step : steps_) {
      if (step.waits == 0 && !step.follows) first.push_back(&step);
    }
    for (Step* step : first) start(*step);
  }

  ReplayedEnds ends() const {
    ReplayedEnds ends;
    for (const auto& of_rank : ops_) {
      ends.ops.emplace_back();
      for (const Step* op : of_rank) ends.ops.back().push_back(op->end - begin_);
    }
    for (const Step* message : messages_) ends.messages.push_back(message->end - begin_);
    return ends;
  }

 private:
  Step& add(Step step) { return steps_.emplace_back(std::move(step)); }
  Step& wait_on(int rank, double seconds) {
    return add({.host = hosts_[rank].timer, .work = seconds});
  }
  static void order(Step& earlier, Step& later) {
    (earlier.paced != nullptr ? earlier.paced : &earlier)->then.push_back(&later);
    ++later.waits;
  }
  /// What waits for the step waits for this end instead.
  void pace(Step& step, int rank, double end) {
    step.paced = &wait_on(rank, 0);
    step.paced->follows = true;
    step.paced_end = begin_ + end;
  }

  /// Work of the rank's lanes; what SimGrid says of its end is left to itself where it is followed.
  Step& add_work(int rank, Lane lane, double seconds, bool is_kernel, const OpSpan* followed) {
    RankHosts& hosts = hosts_[rank];
    Step& step = lane == Lane::compute
                     ? add({.host = is_kernel ? hosts.gpu : hosts.memory, .work = seconds})
                     : wait_on(rank, seconds);
    if (followed != nullptr) pace(step, rank, followed->end);
    return step;
  }

  void add_ops(int rank) {
    const RankWork& work = program_.ranks[at(rank)];
    std::vector<Step*>& ends = ops_.emplace_back();
    std::array<Step*, 2> last = {nullptr, nullptr};
    const auto queue = [&](std::size_t lane, Step& first, Step& then) {
      if (last[lane] != nullptr) order(*last[lane], first);
      last[lane] = &then;
    };
    for (int i = 0; i < std::ssize(work.ops); ++i) {
      const TimedOp& op = work.ops[at(i)];
      if (i == work.early_before) {
        Step& early = add_work(rank, Lane::compute, work.early_seconds, false,
                               followed_ ? &followed_->early[at(rank)] : nullptr);
        queue(0, early, early);
      }
      const std::size_t lane = op.lane == Lane::compute ? 0 : 1;
      Step* first = nullptr;
      Step* then = nullptr;
      if (op.exchange >= 0) {
        first = posted_[at(op.exchange)];
        then = done_[at(op.exchange)];
        order(*first, *then);
      } else {
        first = then = &add_work(rank, op.lane, op.seconds, op.cycle_seconds > 0,
                                 followed_ ? &followed_->spans[at(rank)][at(i)] : nullptr);
      }
      queue(lane, *first, *then);
      for (const int before : op.after) order(*ends[at(before)], *first);
      ends.push_back(then);
    }
  }

  int rank_of(int exchange) const { return program_.exchanges[at(exchange)].rank; }
  int receiver(int message) const { return rank_of(program_.messages[at(message)].to); }

  void add_messages(int exchange) {
    const LinkedExchange& linked = program_.exchanges[at(exchange)];
    if (linked.sends.empty()) return;
    std::array<std::vector<int>, 2> queues;  // within the node, across nodes
    const std::int64_t gpus = cluster_.platform.node.gpus;
    for (const int m : linked.sends) {
      queues[linked.rank / gpus == receiver(m) / gpus ? 0 : 1].push_back(m);
    }
    const cost::LinkRates& links = cluster_.platform.links;
    Step& go = wait_on(linked.rank, queues[1].empty() ? links.seconds_per_exchange
                                                      : cluster_.fabric->seconds_per_exchange);
    order(*first_exchange_, go);
    order(*posted_[at(exchange)], go);
    for (const int peer : linked.receivers) {
      if (!program_.exchanges[at(peer)].lands_early) order(*posted_[at(peer)], go);
    }
    for (const std::size_t across : {0U, 1U}) {
      std::ranges::stable_sort(queues[across], {},
                               [&](int m) { return routes_.order(linked.rank, receiver(m)); });
      const double gap =
          across == 1 ? cluster_.fabric->seconds_per_message : links.seconds_per_message;
      add_queue(go, queues[across], across, linked.alone && across == 0, gap);
    }
  }

  /// Messages one after the other, or `at_once`. Each copy but the very first waits for `gap`.
  void add_queue(Step& go, const std::vector<int>& messages, std::size_t across, bool at_once,
                 double gap) {
    Step* previous = &go;
    for (const int m : messages) {
      const int gaps = program_.messages[at(m)].copies - (previous == &go ? 1 : 0);
      Step& sent = add_message(m, across, *previous, at_once ? 0 : gaps * gap);
      if (!at_once) previous = &sent;
    }
  }

  Step& add_message(int m, std::size_t across, Step& previous, double wait) {
    const LinkedMessage& message = program_.messages[at(m)];
    const int sender = rank_of(message.from);
    RankHosts& from = hosts_[sender];
    RankHosts& to = hosts_[rank_of(message.to)];
    Step& waited = wait_on(sender, wait);
    Step& sent = add({.host = across == 1 ? from.nic : from.port,
                      .to = across == 1 ? to.nic : to.port,
                      .work = static_cast<double>(message.bytes)});
    if (followed_ != nullptr) pace(sent, sender, followed_->arrivals[at(m)]);
    for (Step* step : {&waited, &sent}) {
      step->change = step == &waited ? 1 : -1;
      step->across = across;
      step->sender = &from;
      step->receiver = &to;
    }
    order(previous, waited);
    order(waited, sent);
    order(sent, *done_[at(message.from)]);
    order(sent, *done_[at(message.to)]);
    messages_[at(m)] = &sent;
    return sent;
  }

  const Program& program_;
  const Cluster& cluster_;
  const SimulatedPass* followed_;
  double begin_;
  FluidLinks unused_links_;
  Routes routes_;  ///< for the order of sending alone
  SimgridHosts hosts_;
  std::deque<Step> steps_;
  Step* first_exchange_;                 ///< ends when the first one may go
  std::vector<Step*> posted_, done_;     ///< by exchange
  std::vector<std::vector<Step*>> ops_;  ///< by rank and op
  std::vector<Step*> messages_;
};

}  // namespace

ReplayedEnds replay_with_simgrid(const Program& program, const Cluster& cluster,
                                 const SimulatedPass* followed) {
  std::vector<std::string> options = simgrid_options();
  std::vector<char*> arguments;
  for (std::string& option : options) arguments.push_back(option.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  s4u::Engine engine(&count, arguments.data());
  const double begin = s4u::Engine::get_clock();  // the end of an earlier engine, if there was one
  [[maybe_unused]] static const bool is_connected = [] {
    s4u::Activity::on_completion_cb(
        [](const s4u::Activity& activity) { end(*activity.get_data<Step>()); });
    return true;
  }();
  s4u::NetZone* zone = s4u::create_star_zone("cluster");
  PassSteps steps(program, cluster, followed, begin, *zone);
  zone->seal();
  steps.start_all();
  engine.run();
  return steps.ends();
}

}  // namespace longca::simulate::testing
