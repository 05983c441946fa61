#include "simulate/program.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace longca::simulate {
namespace {

/// One message at one of its ends.
struct MessageEnd {
  int exchange = 0;
  std::int64_t bytes = 0;
  TensorRole role = TensorRole::k;
  bool joined = false;
};

using EndsByPeer = std::map<int, std::vector<MessageEnd>>;

class Linker {
 public:
  explicit Linker(std::vector<RankWork> ranks) { program_.ranks = std::move(ranks); }

  Program link() {
    number_exchanges();
    for (int from = 0; from < std::ssize(sends_); ++from) {
      for (const auto& [to, sent] : sends_[static_cast<std::size_t>(from)]) {
        link_pair(from, to, sent);
      }
    }
    check_receives();
    for (LinkedExchange& exchange : program_.exchanges) {
      for (std::vector<int>* peers : {&exchange.receivers, &exchange.senders}) {
        std::ranges::sort(*peers);
        peers->erase(std::unique(peers->begin(), peers->end()), peers->end());
      }
    }
    return std::move(program_);
  }

 private:
  void number_exchanges() {
    sends_.resize(program_.ranks.size());
    receives_.resize(program_.ranks.size());
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      RankWork& work = program_.ranks[rank];
      for (const TimedExchange& exchange : work.exchanges) {
        const int number = static_cast<int>(program_.exchanges.size());
        program_.exchanges.push_back({.rank = static_cast<int>(rank),
                                      .op = exchange.op,
                                      .lands_early = exchange.lands_early,
                                      .alone = exchange.alone,
                                      .sends = {},
                                      .receivers = {},
                                      .senders = {}});
        work.ops[static_cast<std::size_t>(exchange.op)].exchange = number;
        add_ends(number, exchange.sends, sends_[rank]);
        add_ends(number, exchange.receives, receives_[rank]);
      }
      work.exchanges = {};
    }
  }

  static void add_ends(int exchange, const std::vector<TimedMessage>& messages, EndsByPeer& ends) {
    for (const TimedMessage& m : messages) {
      ends[m.peer].push_back({exchange, m.bytes, m.role, m.joined});
    }
  }

  LinkedExchange& exchange(int number) {
    return program_.exchanges[static_cast<std::size_t>(number)];
  }

  void link_pair(int from, int to, const std::vector<MessageEnd>& sent) {
    LONGCA_CHECK(to >= 0 && to < std::ssize(receives_), "rank {} sends to rank {}", from, to);
    const std::vector<MessageEnd>& received = receives_[static_cast<std::size_t>(to)][from];
    LONGCA_CHECK(sent.size() == received.size(), "rank {} sends {} messages to {}, which takes {}",
                 from, sent.size(), to, received.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      LONGCA_CHECK(sent[i].bytes == received[i].bytes,
                   "message {} from rank {} to {} has {} bytes, and {} are taken", i, from, to,
                   sent[i].bytes, received[i].bytes);
      if (i > 0 && sent[i].exchange == sent[i - 1].exchange &&
          received[i].exchange == received[i - 1].exchange) {
        program_.messages.back().bytes += sent[i].bytes;
        if (!sent[i].joined) ++program_.messages.back().copies;
        continue;
      }
      const int number = static_cast<int>(program_.messages.size());
      program_.messages.push_back(
          {sent[i].exchange, received[i].exchange, sent[i].bytes, 1, sent[i].role});
      exchange(sent[i].exchange).sends.push_back(number);
      exchange(sent[i].exchange).receivers.push_back(received[i].exchange);
      exchange(received[i].exchange).senders.push_back(sent[i].exchange);
      ++exchange(received[i].exchange).receives;
    }
  }

  void check_receives() const {
    for (std::size_t to = 0; to < receives_.size(); ++to) {
      for (const auto& [from, received] : receives_[to]) {
        const bool is_sent = from >= 0 && from < std::ssize(sends_) &&
                             sends_[static_cast<std::size_t>(from)].contains(static_cast<int>(to));
        LONGCA_CHECK(received.empty() || is_sent,
                     "rank {} takes {} messages from {}, which sends 0", to, received.size(), from);
      }
    }
  }

  Program program_;
  std::vector<EndsByPeer> sends_, receives_;  ///< by rank
};

}  // namespace

Program link(std::vector<RankWork> ranks) {
  return Linker(std::move(ranks)).link();
}

}  // namespace longca::simulate
