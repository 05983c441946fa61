#include "parallel/plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "parallel/plan/accesses.h"

namespace longca::testing {
namespace {

using Halves = std::map<std::pair<int, int>, std::vector<MessageEnd>>;  ///< by (from, to)

void collect(std::span<const RankPlan> plans, bool backward, Halves& sends, Halves& receives) {
  for (const RankPlan& plan : plans) {
    const auto& ops = ops_of(plan, backward);
    for (int op = 0; op < std::ssize(ops); ++op) {
      const auto* exchange = std::get_if<Exchange>(&ops[static_cast<std::size_t>(op)].what);
      if (exchange == nullptr) continue;
      for (int i = 0; i < std::ssize(exchange->sends); ++i) {
        const int to = exchange->sends[static_cast<std::size_t>(i)].peer;
        sends[{plan.rank, to}].push_back({plan.rank, op, i});
      }
      for (int i = 0; i < std::ssize(exchange->receives); ++i) {
        const int from = exchange->receives[static_cast<std::size_t>(i)].peer;
        receives[{from, plan.rank}].push_back({plan.rank, op, i});
      }
    }
  }
}

void check_pair(std::span<const RankPlan> plans, bool backward, const MatchedMessage& message,
                std::vector<std::string>& faults) {
  const auto exchange = [&](const MessageEnd& end) -> const Exchange& {
    const RankPlan& plan = plans[static_cast<std::size_t>(end.rank)];
    return std::get<Exchange>(ops_of(plan, backward)[static_cast<std::size_t>(end.op)].what);
  };
  const RankPlan& from = plans[static_cast<std::size_t>(message.send.rank)];
  const RankPlan& to = plans[static_cast<std::size_t>(message.receive.rank)];
  const Exchange& sender = exchange(message.send);
  const Exchange& receiver = exchange(message.receive);
  const Region& sent = sender.sends[static_cast<std::size_t>(message.send.index)].region;
  const Region& got = receiver.receives[static_cast<std::size_t>(message.receive.index)].region;
  const auto fault = [&](const char* what) {
    faults.push_back(fmt::format("{}: {} differ in {} at rank {}, op {}: {} sent, {} awaited",
                                 name_of(from, backward, message.send.op), "the ends of a message",
                                 what, to.rank, message.receive.op, name_of(from, sent),
                                 name_of(to, got)));
  };
  if (sent.tokens.size() != got.tokens.size() || sent.heads.size() != got.heads.size()) {
    fault("shape");
  } else if (is_float32(from, sent) != is_float32(to, got)) {
    fault("element type");
  } else if (sender.pattern != receiver.pattern) {
    fault("pattern");
  }
}

enum class Stage : std::uint8_t { waiting, begun, ended };

class Simulation {
 public:
  Simulation(std::span<const RankPlan> plans, bool backward,
             std::span<const MatchedMessage> messages)
      : plans_(plans), backward_(backward), peers_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) {
      const std::size_t count = ops_of(plans[r], backward).size();
      stages_.emplace_back(count, Stage::waiting);
      peers_[r].resize(count);
    }
    for (const MatchedMessage& m : messages) {
      peers_of(m.send.rank, m.send.op).push_back(m.receive);
      peers_of(m.receive.rank, m.receive.op).push_back(m.send);
    }
  }

  /// Whether everything ended.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < std::ssize(plans_); ++rank) {
        while (step(rank)) moved = true;
      }
    }
    for (const auto& rank : stages_) {
      for (const Stage stage : rank) {
        if (stage != Stage::ended) return false;
      }
    }
    return true;
  }

  std::vector<Event> take_events() { return std::move(events_); }

  /// What each rank that has not ended stands at.
  std::string standstill() const {
    std::string text;
    for (std::size_t r = 0; r < plans_.size(); ++r) {
      for (std::size_t op = 0; op < stages_[r].size(); ++op) {
        if (stages_[r][op] == Stage::ended) continue;
        text += fmt::format("{}{} {}", text.empty() ? "" : "; ",
                            name_of(plans_[r], backward_, static_cast<int>(op)),
                            stages_[r][op] == Stage::begun ? awaited(r, op) : "cannot begin");
        break;
      }
    }
    return text;
  }

 private:
  std::vector<MessageEnd>& peers_of(int rank, int op) {
    return peers_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)];
  }
  Stage stage(int rank, int op) const {
    return stages_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)];
  }

  std::string awaited(std::size_t rank, std::size_t op) const {
    for (const MessageEnd& peer : peers_[rank][op]) {
      if (stage(peer.rank, peer.op) == Stage::waiting) {
        return fmt::format("waits for rank {}, op {}", peer.rank, peer.op);
      }
    }
    return "waits";
  }

  void set(int rank, int op, Stage stage) {
    stages_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)] = stage;
    events_.push_back({rank, op, stage == Stage::begun});
  }

  bool arrived(int rank, int op) const {
    const auto& peers = peers_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(op)];
    return std::all_of(peers.begin(), peers.end(), [&](const MessageEnd& peer) {
      return stage(peer.rank, peer.op) != Stage::waiting;
    });
  }

  /// One thing that this rank can do; false if there is none.
  bool step(int rank) {
    const auto& ops = ops_of(plans_[static_cast<std::size_t>(rank)], backward_);
    std::array<int, 2> previous = {-1, -1};  // of each lane
    for (int op = 0; op < std::ssize(ops); ++op) {
      const Op& what = ops[static_cast<std::size_t>(op)];
      int& before = previous[static_cast<std::size_t>(what.lane)];
      const bool ready = (before < 0 || stage(rank, before) == Stage::ended) &&
                         std::all_of(what.after.begin(), what.after.end(),
                                     [&](int i) { return stage(rank, i) == Stage::ended; });
      before = op;
      if (stage(rank, op) == Stage::begun && arrived(rank, op)) {
        set(rank, op, Stage::ended);
        return true;
      }
      if (stage(rank, op) != Stage::waiting) continue;
      if (ready) {
        set(rank, op, Stage::begun);
        if (!std::holds_alternative<Exchange>(what.what)) set(rank, op, Stage::ended);
        return true;
      }
    }
    return false;
  }

  std::span<const RankPlan> plans_;
  bool backward_;
  std::vector<std::vector<Stage>> stages_;
  std::vector<std::vector<std::vector<MessageEnd>>> peers_;  ///< by rank and op
  std::vector<Event> events_;
};

}  // namespace

std::vector<MatchedMessage> match_messages(std::span<const RankPlan> plans, bool backward,
                                           std::vector<std::string>& faults) {
  Halves sends;
  Halves receives;
  collect(plans, backward, sends, receives);
  std::vector<MatchedMessage> matched;
  for (const auto& [pair, list] : receives) sends.try_emplace(pair);
  for (const auto& [pair, list] : sends) {
    const auto& others = receives[pair];
    if (list.size() != others.size()) {
      faults.push_back(fmt::format("{}: rank {} sends {} messages to rank {}, which receives {}",
                                   backward ? "backward" : "forward", pair.first, list.size(),
                                   pair.second, others.size()));
    }
    for (std::size_t i = 0; i < std::min(list.size(), others.size()); ++i) {
      matched.push_back({list[i], others[i]});
      check_pair(plans, backward, matched.back(), faults);
    }
  }
  return matched;
}

std::vector<Event> run_schedule(std::span<const RankPlan> plans, bool backward,
                                std::span<const MatchedMessage> messages,
                                std::vector<std::string>& faults) {
  Simulation simulation(plans, backward, messages);
  if (!simulation.run()) {
    faults.push_back(fmt::format("the ranks come to a standstill: {}", simulation.standstill()));
  }
  return simulation.take_events();
}

}  // namespace longca::testing
