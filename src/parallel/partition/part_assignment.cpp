#include "parallel/partition/part_assignment.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "parallel/partition/rebalance.h"
#include "parallel/partition/token_transfer.h"

namespace longca {
namespace {

/// The shortest parts, up to this fraction of the tokens, are held back until after `rebalance`.
constexpr double kKeptBack = 0.05;
/// How often the CP ranks are sorted again by need while parts are assigned.
constexpr std::size_t kEpochs = 16;
/// CP ranks tried for one part.
constexpr std::size_t kMaxTries = 4;

class PartAssigner {
 public:
  PartAssigner(PartPacking& packing, const AssignmentRule& rule)
      : packing_(packing),
        overshoot_(rule.overshoot * packing.share()),
        long_part_(rule.long_part * packing.share()),
        only_dense_(rule.only_dense),
        cp_rank_tokens_(static_cast<double>(packing.tokens()) / packing.cp_ranks()) {}

  void run() {
    for (int part = 0; part < packing_.parts(); ++part) count_unassigned(part);
    std::vector<int> order = by_weight();
    const std::vector<int> shortest = take_shortest(order);
    std::vector<int> later = partition(order);
    later.insert(later.end(), shortest.begin(), shortest.end());
    set_filling();
    rebalance(packing_);
    fill(partition(later));
  }

 private:
  using Entry = std::pair<double, int>;
  static constexpr double kLongFirst = 1e9;
  using Queue = std::priority_queue<Entry>;

  /// Larger weights are assigned first: long parts by density, then the others by their fraction of
  /// a CP rank's area or tokens, whichever is larger.
  double weight(int part) const {
    const double area = packing_.area(part) / std::max(packing_.share(), 1.0);
    if (is_long(part)) return kLongFirst + area / static_cast<double>(packing_.size(part));
    return std::max(area, static_cast<double>(packing_.size(part)) / cp_rank_tokens_);
  }

  std::vector<int> by_weight() const {
    std::vector<Entry> entries;
    for (int part = 0; part < packing_.parts(); ++part) entries.emplace_back(-weight(part), part);
    std::sort(entries.begin(), entries.end());
    std::vector<int> order;
    for (const Entry& entry : entries) order.push_back(entry.second);
    return order;
  }

  /// Removes the last, shortest parts from `order` and returns them.
  std::vector<int> take_shortest(std::vector<int>& order) const {
    auto budget = static_cast<std::int64_t>(kKeptBack * static_cast<double>(packing_.tokens()));
    const auto longest = static_cast<std::int64_t>(cp_rank_tokens_) / kGrainsPerCpRank;
    auto first = order.end();
    while (first != order.begin() && packing_.size(*(first - 1)) <= std::min(budget, longest)) {
      budget -= packing_.size(*--first);
    }
    std::vector<int> shortest(first, order.end());
    order.erase(first, order.end());
    return shortest;
  }

  bool is_long(int part) const {
    const double density = packing_.area(part) / static_cast<double>(packing_.size(part));
    return packing_.area(part) > long_part_ &&
           (!only_dense_ || density * cp_rank_tokens_ > packing_.share());
  }

  void count_unassigned(int part, double sign = 1) {
    if (is_long(part)) return;
    unassigned_area_ += sign * packing_.area(part);
    unassigned_tokens_ += sign * static_cast<double>(packing_.size(part));
  }

  void set_filling() {
    packing_.set_filling(
        unassigned_tokens_ >= 1 ? std::max(unassigned_area_, 0.0) / unassigned_tokens_ : 0.0);
  }

  Queue by_need() const {
    std::vector<Entry> entries;
    for (int p = 0; p < packing_.cp_ranks(); ++p) {
      if (packing_.free_tokens(p) > 0) entries.emplace_back(packing_.need(p), -p);
    }
    return Queue(std::less<Entry>(), std::move(entries));
  }

  /// Gives each part to the CP rank that needs it most, or cuts off the end that this one needs.
  /// Returns the parts that fitted nowhere.
  std::vector<int> partition(const std::vector<int>& order) {
    Queue waiting;
    for (const int part : order) waiting.emplace(weight(part), -part);
    const std::size_t epoch = std::max<std::size_t>(order.size() / kEpochs, 1);
    Queue needs;
    std::vector<int> unplaced;
    for (std::size_t i = 0; !waiting.empty(); ++i) {
      const int part = -waiting.top().second;
      waiting.pop();
      count_unassigned(part, -1);
      if (i % epoch == 0) {
        set_filling();
        needs = by_need();
      }
      const Outcome outcome = assign_one(part, needs);
      if (outcome == Outcome::assigned) continue;
      count_unassigned(part);
      if (outcome == Outcome::cut) {
        waiting.emplace(weight(part), -part);
      } else {
        unplaced.push_back(part);
      }
    }
    return unplaced;
  }

  enum class Outcome : std::uint8_t { assigned, cut, unplaced };

  Outcome assign_one(int part, Queue& needs) {
    const std::int64_t min_tokens = std::min(packing_.size(part), packing_.grain());
    std::vector<int> tried;
    int owner = -1;
    int neediest = -1;
    while (!needs.empty() && owner < 0 && tried.size() < kMaxTries) {
      const int p = -needs.top().second;
      needs.pop();
      tried.push_back(p);
      if (may_have_whole(p, part)) owner = p;
      if (neediest < 0 && packing_.free_tokens(p) >= min_tokens) neediest = p;
    }
    Outcome outcome = Outcome::unplaced;
    if (owner >= 0) {
      packing_.give(part, owner);
      outcome = Outcome::assigned;
    } else if (neediest >= 0 && packing_.area(part) > overshoot_) {
      const double wanted = std::max(packing_.need(neediest), overshoot_);
      outcome = packing_.give_end(part, wanted, neediest) ? Outcome::cut : Outcome::assigned;
    }
    for (const int p : tried) {
      if (packing_.free_tokens(p) > 0) needs.emplace(packing_.need(p), -p);
    }
    return outcome;
  }

  /// Whether CP rank p has the tokens free and would exceed its need by the overshoot at most.
  bool may_have_whole(int p, int part) const {
    if (packing_.free_tokens(p) < packing_.size(part)) return false;
    return packing_.area(part) <= overshoot_ ||
           packing_.excess(part) <= packing_.need(p) + overshoot_;
  }

  /// The CP ranks, those with most free tokens first.
  std::vector<int> by_free_tokens() const {
    std::vector<int> order(static_cast<std::size_t>(packing_.cp_ranks()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return packing_.free_tokens(a) > packing_.free_tokens(b);
    });
    return order;
  }

  /// Assigns the parts that fitted nowhere: whole if a CP rank can pass on as many tokens as it
  /// lacks room for, else cut among those with most free tokens.
  void fill(const std::vector<int>& parts) {
    std::vector<int> cut;
    for (const int part : parts) {
      if (packing_.cp_ranks() > kFewCpRanks || !fit_whole(part)) cut.push_back(part);
    }
    const std::vector<int> order = by_free_tokens();
    auto cp_rank = order.begin();
    for (const int part : cut) {
      Range left = packing_.tokens_of(part);
      while (!left.empty()) {
        while (packing_.free_tokens(*cp_rank) == 0) ++cp_rank;
        const std::int64_t end = left.begin + std::min(left.size(), packing_.free_tokens(*cp_rank));
        packing_.give_tokens(part, {left.begin, end}, *cp_rank);
        left.begin = end;
      }
    }
  }

  /// Passes tokens on from one CP rank until the part fits there, and gives it; false if none can.
  bool fit_whole(int part) {
    const std::vector<int> order = by_free_tokens();
    return std::any_of(order.begin(), order.end(), [&](int owner) {
      for (const int other : order) {
        const std::int64_t lacking = packing_.size(part) - packing_.free_tokens(owner);
        if (lacking <= 0) break;
        const std::int64_t moved = std::min(lacking, packing_.free_tokens(other));
        if (other != owner && moved > 0) transfer_tokens(packing_, owner, other, moved);
      }
      if (packing_.free_tokens(owner) < packing_.size(part)) return false;
      packing_.give(part, owner);
      return true;
    });
  }

  PartPacking& packing_;
  double overshoot_;  ///< cells
  double long_part_;  ///< cells
  bool only_dense_;
  double cp_rank_tokens_;
  /// Of the parts that are neither assigned yet nor long.
  double unassigned_area_ = 0;
  double unassigned_tokens_ = 0;
};

}  // namespace

void assign_parts(PartPacking& packing, const AssignmentRule& rule) {
  PartAssigner(packing, rule).run();
}

}  // namespace longca
