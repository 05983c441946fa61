#include "parallel/plan/timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/error.h"
#include "cost/kernel_cost.h"
#include "parallel/plan/explain.h"

namespace longca {
namespace {

struct Place {
  int rank = 0;
  int op = 0;
};

/// When an op begins and ends, in ms; empty until known.
struct Times {
  std::optional<double> begin, end;
};

class Clock {
 public:
  Clock(std::span<const RankPlan> plans, bool backward, int head_dim, DType dtype,
        const PlanRates& rates)
      : plans_(plans), backward_(backward), head_dim_(head_dim), dtype_(dtype), rates_(rates) {
    for (const RankPlan& plan : plans) {
      times_.emplace_back(ops(plan.rank).size());
      peers_.emplace_back(ops(plan.rank).size());
      progress_.push_back(0);
    }
    find_peers();
  }

  void run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int rank = 0; rank < std::ssize(plans_); ++rank) moved = advance(rank) || moved;
    }
    for (const RankPlan& plan : plans_) {
      LONGCA_CHECK(progress(plan.rank) == ops(plan.rank).size(), "rank {} stands still at op {}",
                   plan.rank, progress(plan.rank));
    }
  }

  std::vector<TimelineBar> bars() const {
    std::vector<TimelineBar> bars;
    for (const RankPlan& plan : plans_) {
      const auto& list = ops(plan.rank);
      for (std::size_t i = 0; i < list.size(); ++i) {
        TimelineBar bar = bar_of(plan, list[i]);
        if (bar.area == 0 && bar.bytes == 0) continue;
        bar.begin_ms = *times_[static_cast<std::size_t>(plan.rank)][i].begin;
        bar.end_ms = *times_[static_cast<std::size_t>(plan.rank)][i].end;
        bars.push_back(std::move(bar));
      }
    }
    return bars;
  }

 private:
  /// FLOPs of a cell over those of one in a forward pass.
  double pass_cost() const {
    const auto flops = [&](cost::Pass pass) {
      return cost::flops_per_cell(head_dim_, head_dim_, pass);
    };
    return backward_ ? flops(cost::Pass::backward) / flops(cost::Pass::forward) : 1;
  }
  const std::vector<Op>& ops(int rank) const {
    const RankPlan& plan = plans_[static_cast<std::size_t>(rank)];
    return backward_ ? plan.backward : plan.forward;
  }
  std::size_t& progress(int rank) { return progress_[static_cast<std::size_t>(rank)]; }
  Times& times(Place place) {
    return times_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.op)];
  }

  /// Sets peers_: for each exchange those at the other end of its messages.
  void find_peers() {
    std::map<std::pair<int, int>, std::array<std::vector<Place>, 2>> ends;  // sends, receives
    for (int rank = 0; rank < std::ssize(plans_); ++rank) {
      for (int op = 0; op < std::ssize(ops(rank)); ++op) {
        const auto* e = std::get_if<Exchange>(&ops(rank)[static_cast<std::size_t>(op)].what);
        if (e == nullptr) continue;
        for (const Message& m : e->sends) ends[{rank, m.peer}][0].push_back({rank, op});
        for (const Message& m : e->receives) ends[{m.peer, rank}][1].push_back({rank, op});
      }
    }
    for (const auto& [pair, both] : ends) {
      const auto& [sends, receives] = both;
      LONGCA_CHECK(sends.size() == receives.size(),
                   "rank {} sends {} messages to {}, which takes {}", pair.first, sends.size(),
                   pair.second, receives.size());
      for (std::size_t i = 0; i < sends.size(); ++i) {
        peers_of(sends[i]).push_back(receives[i]);
        peers_of(receives[i]).push_back(sends[i]);
      }
    }
  }

  std::vector<Place>& peers_of(Place place) {
    return peers_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(place.op)];
  }

  TimelineBar bar_of(const RankPlan& plan, const Op& op) const {
    TimelineBar bar{.rank = plan.rank, .lane = op.lane, .step = op.step, .label = {}};
    const auto computes = [&](int mask, const Region& q) {
      const double cells = plan.masks[static_cast<std::size_t>(mask)].mean_area();
      bar.area = cells * static_cast<double>(q.heads.size());
      bar.label = plan_cells(cells) + " cells";
    };
    if (const auto* a = std::get_if<Attend>(&op.what)) computes(a->mask, a->q);
    if (const auto* a = std::get_if<AttendBackward>(&op.what)) computes(a->mask, a->q);
    if (std::holds_alternative<Exchange>(op.what)) {
      const PlanSums sums = sum_plan(plan, {op}, head_dim_, dtype_);
      bar.bytes = std::max(sums.bytes_sent, sums.bytes_received);
      bar.label = plan_bytes(bar.bytes);
    }
    return bar;
  }

  double duration(int rank, const Op& op) const {
    const TimelineBar bar = bar_of(plans_[static_cast<std::size_t>(rank)], op);
    return bar.area * head_dim_ * pass_cost() / rates_.cells_per_ms +
           static_cast<double>(bar.bytes) / rates_.bytes_per_ms;
  }

  /// When an op may begin: the latest end of what it waits for, in ms; none if not known yet.
  std::optional<double> ready(int rank, int op) {
    const auto& list = ops(rank);
    const Op& what = list[static_cast<std::size_t>(op)];
    double latest = 0;
    const auto wait = [&](int before) {
      const auto& end = times({rank, before}).end;
      if (end) latest = std::max(latest, *end);
      return end.has_value();
    };
    for (int before = op - 1; before >= 0; --before) {
      if (list[static_cast<std::size_t>(before)].lane != what.lane) continue;
      if (!wait(before)) return std::nullopt;
      break;
    }
    for (const int before : what.after) {
      if (!wait(before)) return std::nullopt;
    }
    return latest;
  }

  /// Computes the times of a rank's ops that can be known now; false if none was new.
  bool advance(int rank) {
    bool moved = false;
    const auto& list = ops(rank);
    for (auto i = progress(rank); i < list.size(); ++i) {
      const Place place = {rank, static_cast<int>(i)};
      Times& t = times(place);
      if (!t.begin) {
        t.begin = ready(rank, place.op);
        moved = moved || t.begin;
      }
      if (t.begin && !t.end) {
        std::optional<double> met = t.begin;
        for (const Place peer : peers_of(place)) {
          const auto& other = times(peer).begin;
          met = met && other ? std::optional(std::max(*met, *other)) : std::nullopt;
        }
        if (met) t.end = *met + duration(rank, list[i]);
        moved = moved || t.end;
      }
      if (t.end && i == progress(rank)) ++progress(rank);
    }
    return moved;
  }

  std::span<const RankPlan> plans_;
  bool backward_;
  int head_dim_;
  DType dtype_;
  PlanRates rates_;
  std::vector<std::vector<Times>> times_;               ///< [rank][op]
  std::vector<std::vector<std::vector<Place>>> peers_;  ///< [rank][op]; empty if no exchange
  std::vector<std::size_t> progress_;  ///< by rank: all ops before this one have their times
};

}  // namespace

std::vector<TimelineBar> timeline(std::span<const RankPlan> plans, bool backward, int head_dim,
                                  DType dtype, const PlanRates& rates) {
  Clock clock(plans, backward, head_dim, dtype, rates);
  clock.run();
  return clock.bars();
}

}  // namespace longca
