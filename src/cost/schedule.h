#pragma once

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "cost/link_cost.h"

namespace longca::cost {

/// Greedy list scheduling (R. L. Graham, 1966): each item in turn goes to the worker that is free
/// first. `Time`: seconds or cycles.
template <typename Time>
class ListSchedule {
 public:
  explicit ListSchedule(int workers) {
    for (int i = 0; i < workers; ++i) free_.push(Time{});
  }

  /// When the next item begins.
  Time next() const { return free_.top(); }

  void add(Time duration) {
    const Time end = next() + duration;
    free_.pop();
    free_.push(end);
    end_ = std::max(end_, end);
  }

  /// When the last item ends.
  Time end() const { return end_; }

 private:
  std::priority_queue<Time, std::vector<Time>, std::greater<>> free_;
  Time end_{};
};

/// The calls of a rank whose rows are divided, in seconds: rows that see own keys only run before
/// and after the joint ones, which need keys of other ranks.
struct RowSchedule {
  double before = 0;
  double row_terms = 0;  ///< a part of the calls that needs no keys and comes before all of them
  double joint = 0;
  double after = 0;
};

/// When these end, in seconds: the first calls overlap the fetch, the last ones the reduction.
inline double end_by_rows(const RowSchedule& calls, const ExchangeSeconds& exchange) {
  return std::max(calls.before + calls.row_terms, exchange.fetch) - calls.row_terms + calls.joint +
         std::max(calls.after, exchange.reduce);
}

/// When a rank ends whose keys are divided, in seconds: own keys in two halves, which overlap the
/// fetch and the reduction, the keys of others between them.
inline double end_by_keys(double own_half, double others, const ExchangeSeconds& exchange) {
  return std::max(own_half, exchange.fetch) + others + std::max(own_half, exchange.reduce);
}

}  // namespace longca::cost
