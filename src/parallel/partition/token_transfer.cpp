#include "parallel/partition/token_transfer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace longca {
namespace {

/// These constants bound the search. As fractions of a CP rank's share: the need that a transfer
/// may leave, and the gap between two needs that is not worth an exchange.
constexpr double kMaxNeed = 0.015;
constexpr double kEvenEnough = 0.003;
/// An exchange must leave less than this fraction of a gap.
constexpr double kMinGain = 0.98;
/// Max rounds, per CP rank.
constexpr int kMaxRounds = 4;

constexpr PartReach kNear = {};
constexpr PartReach kFar = {16, true, true};

FewParts with(const PartPacking& packing, FewParts few, int part) {
  few.parts[static_cast<std::size_t>(few.count())] = part;
  few.tokens += packing.size(part);
  few.excess += packing.excess(part);
  return few;
}

std::vector<int> shortest_of(const PartPacking& packing, int cp_rank, const PartReach& reach) {
  std::vector<int> parts = packing.held(cp_rank);
  if (reach.only_atoms) {
    std::erase_if(parts, [&](int p) { return packing.before(p) >= 0 || packing.after(p) >= 0; });
  }
  std::sort(parts.begin(), parts.end(), [&](int a, int b) {
    return std::pair(packing.size(a), a) < std::pair(packing.size(b), b);
  });
  if (std::ssize(parts) > reach.parts) parts.resize(static_cast<std::size_t>(reach.parts));
  return parts;
}

/// A move of tokens between two CP ranks: finds the best one and makes it.
class GapTransfer {
 public:
  GapTransfer(PartPacking& packing, int from, int to)
      : packing_(packing), from_(from), to_(to), gap_(packing.need(to) - packing.need(from)) {}

  /// Allows only moves that leave both needs within ±`farthest`.
  void limit(double farthest) {
    min_ = std::max(-farthest - packing_.need(from_), packing_.need(to_) - farthest);
    max_ = std::min(farthest - packing_.need(from_), packing_.need(to_) + farthest);
  }
  /// Allows only moves that bring the needs nearer to each other.
  void improve() { best_error_ = std::abs(gap_ / 2) * kMinGain; }

  /// Moves one of `given`, or a border, in exchange for one of `taken`, so that `tokens` more
  /// tokens go than come. False if no such move is allowed.
  bool run(const std::vector<FewParts>& given, const std::vector<FewParts>& taken,
           std::int64_t tokens) {
    for (const FewParts& got : taken) {
      const std::int64_t wanted = got.tokens + tokens;
      auto it = std::partition_point(given.begin(), given.end(),
                                     [&](const FewParts& few) { return few.tokens < wanted; });
      for (; it != given.end() && it->tokens == wanted; ++it) {
        consider(it->excess - got.excess, {*it, got});
      }
    }
    for (const int a : packing_.held(from_)) {
      for (const int b : {packing_.before(a), packing_.after(a)}) {
        if (b < 0 || packing_.owner(b) != to_) continue;
        for (const FewParts& got : taken) {
          if (!got.has(b)) consider_border(a, b, got, tokens);
        }
      }
    }
    if (best_) make(*best_, tokens);
    return best_.has_value();
  }

 private:
  struct Move {
    FewParts given;
    FewParts got;
    int shrunk = -1;  ///< if a border moves: the part that loses tokens
    int grown = -1;   ///< and its neighbour that gains them
  };

  /// Between two parts of an atom.
  void consider_border(int a, int b, const FewParts& got, std::int64_t tokens) {
    const std::int64_t size = got.tokens + tokens;
    if (size <= 0 || packing_.size(a) <= size) return;
    const double excess = packing_.border_excess(a, packing_.border(a, b, size));
    consider(excess - got.excess, {{}, got, a, b});
  }

  void consider(double excess, const Move& move) {
    if (excess < min_ || excess > max_) return;
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

  void hand_over(int part, int cp_rank) {
    if (part < 0) return;
    packing_.take(part);
    packing_.give(part, cp_rank);
  }

  PartPacking& packing_;
  int from_;
  int to_;
  double gap_;
  double min_ = -std::numeric_limits<double>::infinity();  ///< excess that may move
  double max_ = std::numeric_limits<double>::infinity();
  double best_error_ = std::numeric_limits<double>::infinity();
  std::optional<Move> best_;
};

/// Exchanges between CP ranks until none helps.
class ThoroughRebalance {
 public:
  explicit ThoroughRebalance(PartPacking& packing)
      : packing_(packing),
        changed_(static_cast<std::size_t>(packing.cp_ranks()), 0),
        few_(static_cast<std::size_t>(packing.cp_ranks())) {}

  void run() {
    for (round_ = 1; round_ <= kMaxRounds * packing_.cp_ranks(); ++round_) {
      const std::vector<Gap> gaps = gaps_by_size();
      if (std::none_of(gaps.begin(), gaps.end(), [&](const Gap& gap) { return close(gap); })) {
        return;
      }
    }
  }

 private:
  struct Gap {
    double size = 0;
    int from = 0;
    int to = 0;
  };

  std::vector<Gap> gaps_by_size() const {
    std::vector<Gap> gaps;
    for (int from = 0; from < packing_.cp_ranks(); ++from) {
      for (int to = 0; to < packing_.cp_ranks(); ++to) {
        const double gap = packing_.need(to) - packing_.need(from);
        if (gap > kEvenEnough * packing_.share()) gaps.push_back({gap, from, to});
      }
    }
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap& a, const Gap& b) { return a.size > b.size; });
    return gaps;
  }

  bool close(const Gap& gap) {
    int& tried = tried_[{gap.from, gap.to}];
    if (tried > std::max(changed(gap.from), changed(gap.to))) return false;
    tried = round_;
    GapTransfer transfer(packing_, gap.from, gap.to);
    transfer.improve();
    if (!transfer.run(few_of(gap.from), few_of(gap.to), 0)) return false;
    for (const int p : {gap.from, gap.to}) {
      changed(p) = round_;
      few_[static_cast<std::size_t>(p)].clear();
    }
    return true;
  }

  int& changed(int cp_rank) { return changed_[static_cast<std::size_t>(cp_rank)]; }

  const std::vector<FewParts>& few_of(int cp_rank) {
    std::vector<FewParts>& few = few_[static_cast<std::size_t>(cp_rank)];
    if (few.empty()) few = few_parts(packing_, cp_rank, kFar);
    return few;
  }

  PartPacking& packing_;
  int round_ = 0;
  std::vector<int> changed_;                  ///< by CP rank: the round of its last exchange
  std::map<std::pair<int, int>, int> tried_;  ///< by pair: the round of the last attempt
  std::vector<std::vector<FewParts>> few_;    ///< cached few_parts; empty: to be made again
};

}  // namespace

int FewParts::count() const {
  return static_cast<int>(std::find(parts.begin(), parts.end(), -1) - parts.begin());
}

bool FewParts::has(int part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::vector<FewParts> few_parts(const PartPacking& packing, int cp_rank, const PartReach& reach) {
  const std::vector<int> parts = shortest_of(packing, cp_rank, reach);
  std::vector<FewParts> all = {{}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const FewParts one = with(packing, {}, parts[i]);
    all.push_back(one);
    for (std::size_t j = 0; j < i; ++j) {
      const FewParts two = with(packing, one, parts[j]);
      all.push_back(two);
      for (std::size_t k = 0; reach.triples && k < j; ++k) {
        all.push_back(with(packing, two, parts[k]));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const FewParts& a, const FewParts& b) { return a.tokens < b.tokens; });
  return all;
}

bool transfer_tokens(PartPacking& packing, int from, int to, std::int64_t tokens) {
  GapTransfer transfer(packing, from, to);
  transfer.limit(std::max(
      {std::abs(packing.need(from)), std::abs(packing.need(to)), kMaxNeed * packing.share()}));
  return transfer.run(few_parts(packing, from, kNear), few_parts(packing, to, kNear), tokens);
}

void rebalance_thoroughly(PartPacking& packing) {
  packing.set_filling(0);
  ThoroughRebalance(packing).run();
}

}  // namespace longca
