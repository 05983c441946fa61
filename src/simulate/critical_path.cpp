#include "simulate/critical_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "parallel/plan/explain.h"

namespace longca::simulate {
namespace {

/// A part of the path: computing, or an exchange.
struct Stretch {
  int rank = 0;
  double begin = 0, end = 0;
  int message = -1;  ///< −1: computing
};

std::string_view contents(TensorRole role) {
  switch (role) {
    case TensorRole::k:
    case TensorRole::v:
      return "keys";
    case TensorRole::q:
      return "queries";
    case TensorRole::dk:
    case TensorRole::dv:
    case TensorRole::dq:
      return "gradients";
    case TensorRole::o:
    case TensorRole::lse:
      return "results";
    case TensorRole::dout:
      return "gradients of O";
  }
  return "bytes";
}

class PathFinder {
 public:
  PathFinder(const Program& program, const SimulatedPass& pass) : program_(program), pass_(pass) {}

  /// From the end of a rank's pass back to where a pass begins: that rank.
  int find(int rank) {
    OpPlace place{rank, last_op(rank)};
    while (place.op != kPassStart) place = step(place);
    std::ranges::reverse(path_);
    return place.rank;
  }
  const std::vector<Stretch>& path() const { return path_; }

 private:
  int last_op(int rank) const {
    const auto& spans = pass_.spans[static_cast<std::size_t>(rank)];
    const auto last = std::ranges::max_element(spans, {}, &OpSpan::end);
    return last == spans.end() ? kPassStart : static_cast<int>(last - spans.begin());
  }

  /// Adds the op's stretch, and returns the op that it waited for.
  OpPlace step(OpPlace place) {
    const OpSpan& own = pass_.span(place);
    if (own.last < 0) {
      add({place.rank, own.begin, own.end, -1});
      return {place.rank, own.cause};
    }
    const LinkedMessage& m = program_.messages[static_cast<std::size_t>(own.last)];
    const LinkedExchange& from = program_.exchanges[static_cast<std::size_t>(m.from)];
    const LinkedExchange& to = program_.exchanges[static_cast<std::size_t>(m.to)];
    const bool sends = from.rank == place.rank;
    const LinkedExchange& peer = sends ? to : from;
    // The message could leave when both were there: whoever came last is on the path. A receiver
    // in whose buffers messages land early is there from the start of its pass.
    const OpSpan& posted = pass_.span({peer.rank, peer.op});
    const bool is_granted_early = sends && to.lands_early;
    const double ready =
        is_granted_early ? pass_.starts[static_cast<std::size_t>(peer.rank)] : posted.begin;
    if (ready <= own.begin || ready >= own.end) {
      add({place.rank, own.begin, own.end, own.last});
      return {place.rank, own.cause};
    }
    add({place.rank, ready, own.end, own.last});
    return {peer.rank, is_granted_early ? kPassStart : posted.cause};
  }

  void add(const Stretch& stretch) {
    if (stretch.end <= stretch.begin) return;
    if (!path_.empty() && stretch.message < 0) {
      Stretch& next = path_.back();  // in time it follows
      if (next.message < 0 && next.rank == stretch.rank) {
        next.begin = stretch.begin;
        return;
      }
    }
    path_.push_back(stretch);
  }

  const Program& program_;
  const SimulatedPass& pass_;
  std::vector<Stretch> path_;
};

}  // namespace

CriticalPath critical_path(const Program& program, const SimulatedPass& pass,
                           const Cluster& cluster, int last) {
  PathFinder finder(program, pass);
  CriticalPath found{.first = finder.find(last), .sentences = {}};
  std::vector<std::string>& sentences = found.sentences;
  for (const Stretch& stretch : finder.path()) {
    const double ms = (stretch.end - stretch.begin) * 1e3;
    if (stretch.message < 0) {
      sentences.push_back(fmt::format("rank {} computes for {:.3f} ms", stretch.rank, ms));
      continue;
    }
    const LinkedMessage& m = program.messages[static_cast<std::size_t>(stretch.message)];
    const int from = program.exchanges[static_cast<std::size_t>(m.from)].rank;
    const int to = program.exchanges[static_cast<std::size_t>(m.to)].rank;
    const auto node = [&](int rank) { return rank / cluster.platform.node.gpus; };
    const std::string_view link = node(from) == node(to) ? "NVLink" : "the NIC";
    const std::string what = fmt::format("{} of {}", plan_bytes(m.bytes), contents(m.role));
    sentences.push_back(
        from == stretch.rank
            ? fmt::format("rank {} waits {:.3f} ms until {} have left for rank {} over {}", from,
                          ms, what, to, link)
            : fmt::format("rank {} waits {:.3f} ms for {} from rank {} over {}", to, ms, what, from,
                          link));
  }
  return found;
}

}  // namespace longca::simulate
