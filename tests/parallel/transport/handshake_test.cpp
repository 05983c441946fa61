#include "parallel/transport/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <random>
#include <utility>

namespace longca::test {
namespace {

using Group = Handshake::Group;
using Number = Handshake::Number;
using NumbersOf = std::vector<Number>;

TEST(Handshake, CountsExchangesWithEveryPeer) {
  Handshake handshake(3);
  const auto first = handshake.start({{1, 2}, {2}});
  EXPECT_EQ(first.grants, (NumbersOf{{2, 1}}));
  EXPECT_EQ(first.granted, (NumbersOf{{1, 1}, {2, 1}}));
  EXPECT_EQ(first.arrivals, first.granted);
  EXPECT_EQ(first.arrived, first.grants);
  const auto second = handshake.start({{2}, {1, 2}});
  EXPECT_EQ(second.grants, (NumbersOf{{1, 1}, {2, 2}}));
  EXPECT_EQ(second.granted, (NumbersOf{{2, 2}}));
}

TEST(Handshake, GrantsAPassUpToTheFirstThatMustNotLandEarly) {
  Handshake handshake(3);
  const Group early{{}, {1, 2}, true}, of_one{{}, {1}, false}, again{{}, {1, 2}, true};
  const std::vector<const Group*> pass = {&early, &of_one, &again};
  EXPECT_EQ(handshake.expect(pass), (NumbersOf{{1, 1}, {2, 2}}));
  EXPECT_EQ(handshake.start(early).grants, NumbersOf{});
  EXPECT_EQ(handshake.start(of_one).grants, (NumbersOf{{1, 2}}));
  const auto last = handshake.start(again);
  EXPECT_EQ(last.grants, (NumbersOf{{1, 3}}));
  EXPECT_EQ(last.arrived, (NumbersOf{{1, 3}, {2, 2}}));
  EXPECT_EQ(handshake.expect(pass), (NumbersOf{{1, 4}, {2, 4}})) << "and so the next pass";
}

/// What a rank's stream does, in order.
struct Event {
  enum class What { grant, await_grant, write, arrive, await_arrival, begin, start, end } what;
  int peer = 0;
  std::uint32_t value = 0;
  int pass = 0;
  int group = 0;  ///< of the pass
};

/// Ranks whose streams run beside each other in any order.
class Streams {
 public:
  Streams(int ranks, std::mt19937& random) : random_(random) {
    for (int rank = 0; rank < ranks; ++rank) handshakes_.emplace_back(ranks);
    queues_.resize(static_cast<std::size_t>(ranks));
  }

  /// Per rank: its groups.
  using Pass = std::vector<std::vector<Group>>;

  void queue(const Pass& pass, bool expects) {
    const int number = static_cast<int>(passes_.size());
    passes_.push_back(pass);
    for (int rank = 0; rank < static_cast<int>(queues_.size()); ++rank) {
      const auto& groups = pass[static_cast<std::size_t>(rank)];
      auto& queue = queues_[static_cast<std::size_t>(rank)];
      Handshake& handshake = handshakes_[static_cast<std::size_t>(rank)];
      const auto add = [&](Event::What what, const NumbersOf& numbers, int group) {
        for (const auto& [peer, value] : numbers)
          queue.push_back({what, peer, value, number, group});
      };
      queue.push_back({Event::What::begin, 0, 0, number, 0});
      std::vector<const Group*> all;
      for (const Group& group : groups) all.push_back(&group);
      if (expects) add(Event::What::grant, handshake.expect(all), 0);
      for (int i = 0; i < static_cast<int>(groups.size()); ++i) {
        const auto& group = groups[static_cast<std::size_t>(i)];
        const auto numbers = handshake.start(group);
        queue.push_back({Event::What::start, 0, 0, number, i});
        add(Event::What::grant, numbers.grants, i);
        add(Event::What::await_grant, numbers.granted, i);
        const bool tells_each = random_() % 2 == 0;
        for (std::size_t to = 0; to < group.to.size(); ++to) {
          queue.push_back({Event::What::write, group.to[to], 0, number, i});
          if (tells_each) add(Event::What::arrive, {numbers.arrivals[to]}, i);
        }
        if (!tells_each) add(Event::What::arrive, numbers.arrivals, i);
        add(Event::What::await_arrival, numbers.arrived, i);
        queue.push_back({Event::What::end, 0, 0, number, i});
      }
    }
  }

  void run() {
    for (;;) {
      std::vector<int> ready;
      bool all_done = true;
      for (int rank = 0; rank < static_cast<int>(queues_.size()); ++rank) {
        const auto& queue = queues_[static_cast<std::size_t>(rank)];
        all_done &= queue.empty();
        if (!queue.empty() && can_run(rank, queue.front())) ready.push_back(rank);
      }
      if (all_done) return;
      ASSERT_FALSE(ready.empty()) << "all wait for each other";
      const int rank = ready[random_() % ready.size()];
      const Event event = queues_[static_cast<std::size_t>(rank)].front();
      queues_[static_cast<std::size_t>(rank)].pop_front();
      ASSERT_NO_FATAL_FAILURE(run(rank, event));
    }
  }

  int early = 0;  ///< messages that landed before their receiver started the group

 private:
  using Link = std::pair<int, int>;  ///< writer of the word, holder

  bool can_run(int rank, const Event& event) {
    const Link link{event.peer, rank};
    if (event.what == Event::What::await_grant) return grants_[link] >= event.value;
    if (event.what == Event::What::await_arrival) return arrivals_[link] >= event.value;
    return true;
  }

  void run(int rank, const Event& event) {
    const Link link{rank, event.peer};
    switch (event.what) {
      case Event::What::grant:
        ASSERT_GT(event.value, grants_[link]) << "a number sinks";
        grants_[link] = event.value;
        break;
      case Event::What::arrive:
        ASSERT_GT(event.value, arrivals_[link]) << "a number sinks";
        arrivals_[link] = event.value;
        break;
      case Event::What::write:
        land(rank, event);
        break;
      case Event::What::begin:
        begun_[rank] = event.pass;
        break;
      case Event::What::start:
        started_[rank] = {event.pass, event.group};
        break;
      case Event::What::end:
        expect_landed(rank, event);
        break;
      case Event::What::await_grant:
      case Event::What::await_arrival:
        break;
    }
  }

  const std::vector<Group>& groups(int pass, int rank) const {
    return passes_[static_cast<std::size_t>(pass)][static_cast<std::size_t>(rank)];
  }

  /// The n-th group in which one writes to another is the n-th in which that one receives from it.
  void land(int rank, const Event& event) {
    const auto nth = [](const std::vector<Group>& all, auto peers, int peer, int before) {
      return std::count_if(all.begin(), all.begin() + before, [&](const Group& group) {
        return std::ranges::count(group.*peers, peer) > 0;
      });
    };
    const auto& mine = groups(event.pass, rank);
    const auto& theirs = groups(event.pass, event.peer);
    const auto count = nth(mine, &Group::to, event.peer, event.group);
    int group = 0;
    while (std::ranges::count(theirs[static_cast<std::size_t>(group)].from, rank) == 0 ||
           nth(theirs, &Group::from, rank, group) != count) {
      ++group;
    }
    const std::pair<int, int> at{event.pass, group};
    if (theirs[static_cast<std::size_t>(group)].lands_early) {
      ASSERT_GE(begun_[event.peer], event.pass) << "lands in the pass before";
      early += started_[event.peer] < at ? 1 : 0;
    } else {
      ASSERT_GE(started_[event.peer], at) << "lands where something else may still lie";
    }
    landed_.push_back({event.peer, rank, at});
  }

  void expect_landed(int rank, const Event& event) {
    for (const int peer : groups(event.pass, rank)[static_cast<std::size_t>(event.group)].from) {
      const Landed landed{rank, peer, {event.pass, event.group}};
      ASSERT_EQ(std::ranges::count(landed_, landed), 1) << "ended without what should arrive";
    }
  }

  struct Landed {
    int at, from;
    std::pair<int, int> group;
    bool operator==(const Landed&) const = default;
  };

  std::mt19937& random_;
  std::vector<Handshake> handshakes_;
  std::vector<std::deque<Event>> queues_;
  std::vector<Pass> passes_;
  std::map<Link, std::uint32_t> grants_, arrivals_;
  std::map<int, int> begun_;
  std::map<int, std::pair<int, int>> started_;
  std::vector<Landed> landed_;
};

/// Exchanges of all ranks, some of which each rank has no part in; what may land early each decides
/// for itself.
Streams::Pass random_pass(int ranks, std::mt19937& random) {
  Streams::Pass pass(static_cast<std::size_t>(ranks));
  for (int exchange = 0; exchange < 6; ++exchange) {
    std::vector<Group> groups(static_cast<std::size_t>(ranks));
    for (int from = 0; from < ranks; ++from) {
      for (int to = 0; to < ranks; ++to) {
        if (from == to || random() % 2 == 0) continue;
        groups[static_cast<std::size_t>(from)].to.push_back(to);
        groups[static_cast<std::size_t>(to)].from.push_back(from);
      }
    }
    for (std::size_t rank = 0; rank < groups.size(); ++rank) {
      groups[rank].lands_early = random() % 3 > 0;
      const bool takes_part = !groups[rank].to.empty() || !groups[rank].from.empty();
      if (takes_part) pass[rank].push_back(groups[rank]);
    }
  }
  return pass;
}

TEST(Handshake, NobodyWaitsForeverOrWritesTooEarly) {
  int early = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(seed % 4);
    Streams streams(ranks, random);
    for (int pass = 0; pass < 4; ++pass) {
      streams.queue(random_pass(ranks, random), random() % 4 > 0);
    }
    ASSERT_NO_FATAL_FAILURE(streams.run());
    early += streams.early;
  }
  EXPECT_GT(early, 100);
}

}  // namespace
}  // namespace longca::test
