#include "parallel/partition/partition_cost.h"

#include <algorithm>

#include "cost/schedule.h"
#include "mask/range.h"

namespace longca {
namespace {

/// The first of ascending ranges that ends after a token.
template <typename Ranges>
auto first_behind(const Ranges& ranges, std::int64_t token) {
  return std::partition_point(ranges.begin(), ranges.end(),
                              [&](const auto& range) { return range.end <= token; });
}

/// Appends to `rest` the keys of `seen` that are not in `own`; returns the cells of `rows` on keys
/// that are.
std::int64_t append_rest(const Band& band, Range rows, Range seen, const std::vector<Range>& own,
                         std::vector<Range>& rest) {
  auto it = first_behind(own, seen.begin);
  const bool is_own = it != own.end() && it->begin <= seen.begin && seen.end <= it->end;
  if (is_own) return band.area();
  std::int64_t cells = 0;
  for (; it != own.end() && it->begin < seen.end; ++it) {
    if (it->begin > seen.begin) rest.push_back({seen.begin, it->begin});
    cells += band.clipped(rows, *it).area();
    seen.begin = it->end;
  }
  if (!seen.empty()) rest.push_back(seen);
  return cells;
}

/// A band, clipped to one range of a CP rank's tokens.
struct CutPiece {
  Band band;
  std::int64_t shift = 0;  ///< token number − local row number
};

/// The cells of a piece in the given local rows.
std::int64_t cells_in(const CutPiece& piece, const std::vector<Range>& local) {
  const Range rows = piece.band.rows();
  const Range mine = {rows.begin - piece.shift, rows.end - piece.shift};
  std::int64_t cells = 0;
  for (auto it = first_behind(local, mine.begin); it != local.end() && it->begin < mine.end; ++it) {
    const Range both = intersect(*it, mine);
    cells +=
        piece.band.clipped({both.begin + piece.shift, both.end + piece.shift}, piece.band.k).area();
  }
  return cells;
}

struct Owned {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t cp_rank = 0;
};

std::vector<Owned> owners_of(const std::vector<std::vector<Range>>& assigned) {
  std::vector<Owned> owners;
  for (std::size_t p = 0; p < assigned.size(); ++p) {
    for (const Range range : assigned[p]) owners.push_back({range.begin, range.end, p});
  }
  std::sort(owners.begin(), owners.end(),
            [](const Owned& a, const Owned& b) { return a.begin < b.begin; });
  return owners;
}

/// Keys sent, and in how many messages.
struct Load {
  std::int64_t keys = 0;
  std::int64_t messages = 0;

  void add(std::int64_t more) {
    keys += more;
    ++messages;
  }
};

/// What CP ranks send, in the order of Cast: each to the next CP rank first, then to the one after
/// that, cyclically. Waits are counted within a node only: beyond, messages may be a million.
class Senders {
 public:
  Senders(std::vector<CpRankCost>& costs, std::int64_t gpus_of_node)
      : costs_(costs), sent_(costs.size()), counts_waiting_(std::ssize(costs) <= gpus_of_node) {}

  /// Must be called with ascending `to`.
  void send(std::size_t from, std::size_t to, std::int64_t keys) {
    Sent& sent = sent_[from];
    Load& load = to > from ? sent.upwards : sent.wrapped;
    load.add(keys);
    if (!counts_waiting_) return;
    if (to > from) {
      wait_for(load, costs_[to]);
    } else if (!waiting_.empty() && waiting_.back().from == from && waiting_.back().to == to) {
      waiting_.back().load = load;
    } else {
      waiting_.push_back({from, to, load});
    }
  }

  void finish() {
    for (const Waiting& one : waiting_) {
      const Load& first = sent_[one.from].upwards;
      wait_for({first.keys + one.load.keys, first.messages + one.load.messages}, costs_[one.to]);
    }
    for (std::size_t p = 0; p < sent_.size(); ++p) {
      const auto& [upwards, wrapped] = sent_[p];
      costs_[p].sent = upwards.keys + wrapped.keys;
      costs_[p].messages = std::max(costs_[p].messages, upwards.messages + wrapped.messages);
    }
  }

 private:
  struct Sent {
    Load upwards;  ///< to CP ranks of higher number, which come first
    Load wrapped;  ///< to those of lower number
  };
  /// A wait for a message to a lower number: known once all that goes upwards is.
  struct Waiting {
    std::size_t from, to;
    Load load;
  };

  static void wait_for(const Load& load, CpRankCost& cost) {
    cost.awaited = std::max(cost.awaited, load.keys);
    cost.awaited_messages = std::max(cost.awaited_messages, load.messages);
  }

  std::vector<CpRankCost>& costs_;
  std::vector<Sent> sent_;
  std::vector<Waiting> waiting_;
  bool counts_waiting_;
};

}  // namespace

CpRankTimes::CpRankTimes(const cost::Platform& platform, const cost::HeadShape& shape)
    : platform_(&platform),
      shape_(shape),
      call_(cost::slice_call(platform, shape, cost::Pass::backward)),
      half_(cost::slice_half_heads_call(platform, shape)) {}

double CpRankTimes::seconds(const CpRankCost& cost) const {
  if (cost.messages == 0) return cost.cells * call_.seconds_per_cell + call_.seconds_per_call;
  return std::min(by_rows(cost), by_keys(cost)) + rounding(cost);
}

double CpRankTimes::exchanges(const CpRankCost& cost) const {
  const auto [fetch, reduce] = exchange(cost);
  return fetch + reduce;
}

double CpRankTimes::overhead(const CpRankCost& cost) const {
  return seconds(cost) - cost.cells * call_.seconds_per_cell - call_.seconds_per_call;
}

cost::ExchangeSeconds CpRankTimes::exchange(const CpRankCost& cost) const {
  if (cost.messages == 0) return {};
  return cost::exchange_seconds(
      *platform_, shape_, static_cast<double>(std::max({cost.received, cost.awaited, cost.sent})),
      static_cast<double>(std::max(cost.messages, cost.awaited_messages)),
      static_cast<double>(std::max(cost.received, cost.sent)), static_cast<double>(cost.messages));
}

/// Rounds the sums that arrive, and those of own keys that others, or two calls, add to.
double CpRankTimes::rounding(const CpRankCost& cost) const {
  return cost::rounding_seconds(*platform_, shape_,
                                static_cast<double>(cost.calls == 0 ? cost.tokens : cost.rows),
                                static_cast<double>(cost.sent));
}

/// Rows divided: one call from the first row that sees keys of others to the last. The rows in
/// front and at the back join it, or run before or after it beside the exchanges, as is best.
double CpRankTimes::by_rows(const CpRankCost& cost) const {
  const cost::ExchangeSeconds exchange = this->exchange(cost);
  const double all = cost.cells * call_.seconds_per_cell;
  if (cost.calls == 0) {
    return std::max(all + call_.seconds_per_call, exchange.fetch + exchange.reduce);
  }
  const double terms = cost::row_term_seconds(*platform_, shape_, static_cast<double>(cost.tokens));
  const auto end = [&](double before, double after) {
    const auto in_call = [&](double seconds) {
      return seconds > 0 ? seconds + call_.seconds_per_call : 0;
    };
    const double joint = all - before - after + call_.seconds_per_call;
    return cost::end_by_rows({in_call(before), terms, joint, in_call(after)}, exchange);
  };
  const double front = cost.front_cells * call_.seconds_per_cell;
  const double back = cost.back_cells * call_.seconds_per_cell;
  const double longer = std::max(front, back);
  return std::min({end(0, 0), end(0, longer), end(longer, 0), end(front, back)});
}

/// Keys divided: half of the heads on own keys first, then foreign keys, then the other half;
/// results are merged.
double CpRankTimes::by_keys(const CpRankCost& cost) const {
  const double own_half =
      (cost.cells - cost.foreign_cells) / 2 * half_.seconds_per_cell + half_.seconds_per_call;
  const double others =
      cost.foreign_cells * call_.seconds_per_cell + cost.calls * call_.seconds_per_call;
  return cost::end_by_keys(own_half, others, exchange(cost)) +
         cost::merge_seconds(*platform_, shape_, static_cast<double>(cost.rows));
}

double CpRankTimes::price_of(const std::vector<CpRankCost>& costs) const {
  double end = 0;
  double longest = 0;
  for (const CpRankCost& cost : costs) {
    end = std::max(end, seconds(cost));
    longest = std::max(longest, exchanges(cost));
  }
  return end + cost::covered_seconds(*platform_, std::ssize(costs), longest);
}

PartitionCost::PartitionCost(const Mask& mask, const cost::Platform& platform,
                             const cost::HeadShape& shape)
    : times_(platform, shape) {
  for (const MaskSlice& slice : mask.slices()) bands_.push_back(Band::of(slice));
  rows_ = RangeIndex(rows_of(bands_));
}

std::vector<Range> PartitionCost::count_rows(const std::vector<Range>& own,
                                             CpRankCost& cost) const {
  std::vector<Range> keys;
  std::vector<Range> joint;     // local rows
  std::vector<CutPiece> alone;  // bands of rows that see own keys only
  std::int64_t cells = 0;
  std::int64_t own_cells = 0;
  std::int64_t shift = 0;  // token number − local row number
  for (const Range range : own) {
    shift += range.begin;
    rows_.for_each_overlapping(range, [&](std::uint32_t i) {
      const Band band = bands_[i].clipped(range, bands_[i].k);
      const Range rows = band.rows();
      if (rows.empty()) return;
      const Range seen = {band.keys_of(rows.begin).begin, band.keys_of(rows.end - 1).end};
      const std::size_t before = keys.size();
      cells += band.area();
      own_cells += append_rest(band, rows, seen, own, keys);
      if (keys.size() == before) {
        alone.push_back({band, shift});
      } else {
        joint.push_back({rows.begin - shift, rows.end - shift});
      }
    });
    shift -= range.end;
  }
  join_ranges(keys);
  join_ranges(joint);
  const auto with_rows = [&](std::int64_t cells_of_rows, std::int64_t rows) {
    return times_.call().cells(static_cast<double>(cells_of_rows), static_cast<double>(rows));
  };
  cost.tokens = total_size(own);
  cost.rows = total_size(joint);
  cost.calls = static_cast<int>(joint.size());
  cost.cells = with_rows(cells, cost.tokens);
  cost.foreign_cells = with_rows(cells - own_cells, cost.rows);
  if (joint.empty()) return keys;
  const std::vector<Range> front = {{0, joint.front().begin}};
  const std::vector<Range> back = {{joint.back().end, cost.tokens}};
  std::int64_t in_front = 0;
  std::int64_t in_back = 0;
  for (const CutPiece& piece : alone) {
    in_front += cells_in(piece, front);
    in_back += cells_in(piece, back);
  }
  cost.front_cells = with_rows(in_front, front[0].size());
  cost.back_cells = with_rows(in_back, back[0].size());
  return keys;
}

std::vector<CpRankCost> PartitionCost::of(const std::vector<std::vector<Range>>& assigned) const {
  const std::vector<Owned> owners = owners_of(assigned);
  std::vector<CpRankCost> costs(assigned.size());
  Senders senders(costs, times_.platform().node.gpus);
  for (std::size_t p = 0; p < assigned.size(); ++p) {
    for (const Range keys : count_rows(assigned[p], costs[p])) {
      for (auto it = first_behind(owners, keys.begin); it != owners.end() && it->begin < keys.end;
           ++it) {
        const std::int64_t size = intersect({it->begin, it->end}, keys).size();
        costs[p].received += size;
        ++costs[p].messages;
        senders.send(it->cp_rank, p, size);
      }
    }
  }
  senders.finish();
  return costs;
}

}  // namespace longca
