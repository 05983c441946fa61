#include "parallel/partition/rebalance.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace longca {
namespace {

/// Ends once no CP rank's need exceeds this fraction of a share …
constexpr double kEvenEnough = 0.004;
/// … or no move leaves less than this fraction of a gap.
constexpr double kMinGain = 0.98;
constexpr int kMaxPartners = 8;

/// A move between two CP ranks: a part or none, in exchange for a part or none.
struct Move {
  int given = -1;
  int got = -1;
  /// If not empty, only these tokens of `given` move, to the part `neighbour`.
  Range border;
  int neighbour = -1;
};

class Rebalance {
 public:
  explicit Rebalance(PartPacking& packing) : packing_(packing) {
    for (int p = 0; p < packing.cp_ranks(); ++p) by_need_.emplace(packing.need(p), p);
  }

  void run() {
    const int rounds = 3 * packing_.cp_ranks();
    for (int round = 0; round < rounds; ++round) {
      const auto [min_need, most_loaded] = *by_need_.begin();
      const auto [max_need, least_loaded] = *by_need_.rbegin();
      if (std::max(-min_need, max_need) < kEvenEnough * packing_.share()) return;
      if (!relieve(most_loaded) && !load(least_loaded)) return;
    }
  }

 private:
  /// Moves area away from a CP rank: to those with most need, or to owners of neighbouring parts.
  bool relieve(int from) {
    std::vector<int> partners;
    for (auto it = by_need_.rbegin(); it != by_need_.rend() && std::ssize(partners) < kMaxPartners;
         ++it) {
      partners.push_back(it->second);
    }
    add_neighbours(from, partners);
    return std::any_of(partners.begin(), partners.end(),
                       [&](int to) { return move_best(from, to); });
  }

  /// Moves area to a CP rank: from those with least need, or from owners of neighbouring parts.
  bool load(int to) {
    std::vector<int> partners;
    for (auto it = by_need_.begin(); it != by_need_.end() && std::ssize(partners) < kMaxPartners;
         ++it) {
      partners.push_back(it->second);
    }
    add_neighbours(to, partners);
    return std::any_of(partners.begin(), partners.end(),
                       [&](int from) { return move_best(from, to); });
  }

  void add_neighbours(int cp_rank, std::vector<int>& partners) const {
    for (const int part : packing_.held(cp_rank)) {
      for (const int other : {packing_.before(part), packing_.after(part)}) {
        if (other >= 0 && packing_.owner(other) >= 0) partners.push_back(packing_.owner(other));
      }
    }
  }

  /// Makes the move that comes nearest to halving the gap between two CP ranks, if one helps.
  bool move_best(int from, int to) {
    if (from == to) return false;
    gap_ = packing_.need(to) - packing_.need(from);
    best_error_ = gap_ / 2 * kMinGain;
    best_.reset();
    for (const int b : packing_.held(to)) {
      consider({-1, b, {}, -1}, -packing_.excess(b), -packing_.size(b), from, to);
    }
    for (const int a : packing_.held(from)) {
      const double excess = packing_.excess(a);
      const std::int64_t size = packing_.size(a);
      consider({a, -1, {}, -1}, excess, size, from, to);
      for (const int b : packing_.held(to)) {
        consider({a, b, {}, -1}, excess - packing_.excess(b), size - packing_.size(b), from, to);
      }
      for (const int b : {packing_.before(a), packing_.after(a)}) {
        if (b >= 0 && packing_.owner(b) == to) consider_borders(a, b, from, to);
      }
    }
    if (best_) make(*best_, from, to);
    return best_.has_value();
  }

  /// Borders of 1, 2, … grains, alone or for a part that makes room for them.
  void consider_borders(int a, int b, int from, int to) {
    const std::int64_t grain = packing_.grain();
    for (std::int64_t size = grain; size < packing_.size(a); size += grain) {
      const Range border = packing_.border(a, b, size);
      const double excess = packing_.border_excess(a, border);
      consider({a, -1, border, b}, excess, size, from, to);
      for (const int c : packing_.held(to)) {
        if (c == b) continue;
        consider({a, c, border, b}, excess - packing_.excess(c), size - packing_.size(c), from, to);
      }
      if (excess > gap_) return;
    }
  }

  void consider(const Move& move, double excess, std::int64_t tokens, int from, int to) {
    if (tokens > packing_.free_tokens(to) || -tokens > packing_.free_tokens(from)) return;
    const double error = std::abs(excess - gap_ / 2);
    if (error >= best_error_) return;
    best_error_ = error;
    best_ = move;
  }

  void make(const Move& move, int from, int to) {
    for (const int p : {from, to}) by_need_.erase({packing_.need(p), p});
    if (move.got >= 0) packing_.take(move.got);
    if (!move.border.empty()) {
      packing_.shift(move.given, move.neighbour, move.border);
    } else if (move.given >= 0) {
      packing_.take(move.given);
      packing_.give(move.given, to);
    }
    if (move.got >= 0) packing_.give(move.got, from);
    for (const int p : {from, to}) by_need_.emplace(packing_.need(p), p);
  }

  PartPacking& packing_;
  std::set<std::pair<double, int>> by_need_;
  double gap_ = 0;
  double best_error_ = 0;
  std::optional<Move> best_;
};

}  // namespace

void rebalance(PartPacking& packing) {
  Rebalance(packing).run();
}

}  // namespace longca
