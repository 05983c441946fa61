#include "parallel/plan/token_transfer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace longca {
namespace {

/// Of each position so many of the shortest parts are looked at.
constexpr std::ptrdiff_t kMostParts = 12;
constexpr double kMostNeed = 0.015;
/// No exchange is made that brings the needs less close than this.
constexpr double kLeastGain = 0.98;
/// Of a position's share.
constexpr double kEvenEnough = 0.003;

/// Up to two parts of one position; −1 for none.
struct Few {
  std::array<int, 2> parts = {-1, -1};
  std::int64_t tokens = 0;
  double excess = 0;
};

/// All of a position's short parts alone and in pairs, and none, by tokens.
std::vector<Few> few_of(const PartPacking& packing, int position) {
  std::vector<int> parts = packing.held(position);
  std::sort(parts.begin(), parts.end(), [&](int a, int b) {
    return std::pair(packing.size(a), a) < std::pair(packing.size(b), b);
  });
  if (std::ssize(parts) > kMostParts) parts.resize(kMostParts);
  std::vector<Few> all = {{}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Few one = {{parts[i], -1}, packing.size(parts[i]), packing.excess(parts[i])};
    all.push_back(one);
    for (std::size_t j = 0; j < i; ++j) {
      all.push_back({{parts[i], parts[j]},
                     one.tokens + packing.size(parts[j]),
                     one.excess + packing.excess(parts[j])});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Few& a, const Few& b) { return a.tokens < b.tokens; });
  return all;
}

class Transfer {
 public:
  Transfer(PartPacking& packing, int from, int to)
      : packing_(packing), from_(from), to_(to), gap_(packing.need(to) - packing.need(from)) {}

  /// Allows what leaves both needs no farther from zero than this.
  void limit(double farthest) {
    least_ = std::max(-farthest - packing_.need(from_), packing_.need(to_) - farthest);
    most_ = std::min(farthest - packing_.need(from_), packing_.need(to_) + farthest);
  }
  /// Allows only what brings the needs nearer to each other.
  void improve() { best_error_ = std::abs(gap_ / 2) * kLeastGain; }

  bool run(std::int64_t tokens) {
    const std::vector<Few> given = few_of(packing_, from_);
    for (const Few& got : few_of(packing_, to_)) {
      consider_borders(got, tokens);
      const std::int64_t wanted = got.tokens + tokens;
      auto it = std::partition_point(given.begin(), given.end(),
                                     [&](const Few& few) { return few.tokens < wanted; });
      for (; it != given.end() && it->tokens == wanted; ++it) {
        consider(it->excess - got.excess, {*it, got, -1, -1});
      }
    }
    if (best_) make(*best_, tokens);
    return best_.has_value();
  }

 private:
  struct Move {
    Few given;
    Few got;
    int shrunk = -1;  ///< a part that leaves tokens to its neighbour, in place of `given`
    int grown = -1;
  };

  /// Between two parts of an atom, in exchange for some of the other position's parts.
  void consider_borders(const Few& got, std::int64_t tokens) {
    const std::int64_t size = got.tokens + tokens;
    if (size == 0) return;
    for (const int a : packing_.held(from_)) {
      if (packing_.size(a) <= size) continue;
      for (const int b : {packing_.before(a), packing_.after(a)}) {
        if (b < 0 || packing_.owner(b) != to_) continue;
        if (std::find(got.parts.begin(), got.parts.end(), b) != got.parts.end()) continue;
        const double excess = packing_.border_excess(a, packing_.border(a, b, size));
        consider(excess - got.excess, {{}, got, a, b});
      }
    }
  }

  void consider(double excess, const Move& move) {
    if (excess < least_ || excess > most_) return;
    const double error = std::abs(excess - gap_ / 2);
    if (error >= best_error_) return;
    best_error_ = error;
    best_ = move;
  }

  void make(const Move& move, std::int64_t tokens) {
    if (move.shrunk >= 0) {
      const std::int64_t size = move.got.tokens + tokens;
      packing_.shift(move.shrunk, move.grown, packing_.border(move.shrunk, move.grown, size));
    }
    for (const int part : move.given.parts) hand_over(part, to_);
    for (const int part : move.got.parts) hand_over(part, from_);
  }

  void hand_over(int part, int position) {
    if (part < 0) return;
    packing_.take(part);
    packing_.give(part, position);
  }

  PartPacking& packing_;
  int from_;
  int to_;
  double gap_;
  double least_ = -std::numeric_limits<double>::infinity();  ///< excess that may move
  double most_ = std::numeric_limits<double>::infinity();
  double best_error_ = std::numeric_limits<double>::infinity();
  std::optional<Move> best_;
};

}  // namespace

bool transfer_tokens(PartPacking& packing, int from, int to, std::int64_t tokens) {
  Transfer transfer(packing, from, to);
  transfer.limit(std::max(
      {std::abs(packing.need(from)), std::abs(packing.need(to)), kMostNeed * packing.share()}));
  return transfer.run(tokens);
}

bool exchange_equal(PartPacking& packing, int from, int to) {
  Transfer transfer(packing, from, to);
  transfer.improve();
  return transfer.run(0);
}

void even_out_in_place(PartPacking& packing) {
  packing.set_filling(0);
  for (int round = 0; round < 2 * packing.positions(); ++round) {
    int most = 0;
    int least = 0;
    for (int p = 1; p < packing.positions(); ++p) {
      if (packing.need(p) < packing.need(most)) most = p;
      if (packing.need(p) > packing.need(least)) least = p;
    }
    if (packing.need(least) - packing.need(most) < kEvenEnough * packing.share()) return;
    if (!exchange_equal(packing, most, least)) return;
  }
}

}  // namespace longca
