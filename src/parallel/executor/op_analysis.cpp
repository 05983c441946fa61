#include "parallel/executor/op_analysis.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <variant>

namespace longca {
namespace {

OpRegions touched(const Exchange& exchange) {
  OpRegions regions;
  for (const Message& m : exchange.sends) regions.read.push_back(m.region);
  for (const Message& m : exchange.receives) regions.written.push_back(m.region);
  return regions;
}

OpRegions touched(const Copy& op) {
  return {{op.from}, {op.to}};
}

OpRegions touched(const Attend& op) {
  OpRegions regions{{op.q, op.k, op.v}, {op.o, op.lse}};
  if (!op.first) regions.read.insert(regions.read.end(), {op.o, op.lse});
  return regions;
}

OpRegions touched(const AttendBackward& op) {
  OpRegions regions{{op.dout, op.q, op.k, op.v, op.o, op.lse}, {op.dq, op.dk, op.dv}};
  if (!op.first_dq) regions.read.push_back(op.dq);
  if (!op.first_dkv) regions.read.insert(regions.read.end(), {op.dk, op.dv});
  return regions;
}

OpRegions touched(const Add& op) {
  return {{op.from, op.into}, {op.into}};
}

OpRegions touched(const Convert& op) {
  return {{op.from}, {op.to}};
}

/// Parts count as written too: the sum may be accumulated in one of them.
OpRegions touched(const Total& op) {
  OpRegions regions{{}, {op.to}};
  for (const Total::Part& part : op.parts) {
    regions.read.push_back(part.from);
    regions.written.push_back(part.from);
  }
  return regions;
}

OpRegions touched(const Clear& op) {
  return {{}, {op.region}};
}

OpRegions touched(const JoinSinks& op) {
  return {{op.o, op.lse}, {op.o, op.lse}};
}

OpRegions touched(const SinkGradients& op) {
  return {{op.dout, op.o, op.lse}, {}};
}

bool any_overlap(const std::vector<Region>& a, const std::vector<Region>& b) {
  return std::ranges::any_of(a, [&](const Region& x) {
    return std::ranges::any_of(b, [&](const Region& y) { return overlap(x, y); });
  });
}

bool ranges_overlap(const Range& a, const Range& b) {
  return !intersect(a, b).empty();
}

}  // namespace

OpRegions regions_of(const Op& op) {
  return std::visit([](const auto& what) { return touched(what); }, op.what);
}

bool overlap(const Region& a, const Region& b) {
  return a.buffer == b.buffer && ranges_overlap(a.tokens, b.tokens) &&
         ranges_overlap(a.heads, b.heads);
}

bool conflict(const OpRegions& a, const OpRegions& b) {
  return any_overlap(a.written, b.read) || any_overlap(a.written, b.written) ||
         any_overlap(a.read, b.written);
}

namespace {

bool is_lse(const RankPlan& plan, const Region& region) {
  return plan.buffers[static_cast<std::size_t>(region.buffer)].role == TensorRole::lse;
}

bool may_join(const RankPlan& plan, const Op& op) {
  if (const auto* copy = std::get_if<Copy>(&op.what)) return !is_lse(plan, copy->from);
  return std::holds_alternative<Total>(op.what);
}

/// Whether `op` can join a run that `first` begins, unless it conflicts with one of its ops.
bool may_follow(const Op& first, const Op& op) {
  if (op.what.index() != first.what.index()) return false;
  // On the communication lane a copy belongs to an exchange that may end on the host.
  if (op.lane != Lane::compute || first.lane != Lane::compute) return false;
  return std::ranges::all_of(op.after, [&](int before) {
    return std::ranges::find(first.after, before) != first.after.end();
  });
}

/// Regions by buffer, each with a range of tokens that contains them all: runs have thousands of
/// ops, most of which come by ascending tokens, so that few regions are compared.
class RegionSet {
 public:
  void add(const std::vector<Region>& regions) {
    for (const Region& region : regions) {
      Held& held = by_buffer_[region.buffer];
      held.tokens = held.regions.empty() ? region.tokens
                                         : Range{std::min(held.tokens.begin, region.tokens.begin),
                                                 std::max(held.tokens.end, region.tokens.end)};
      held.regions.push_back(region);
    }
  }

  bool overlaps(const std::vector<Region>& regions) const {
    return std::ranges::any_of(regions, [&](const Region& region) {
      const auto held = by_buffer_.find(region.buffer);
      return held != by_buffer_.end() && ranges_overlap(held->second.tokens, region.tokens) &&
             std::ranges::any_of(held->second.regions,
                                 [&](const Region& other) { return overlap(other, region); });
    });
  }

  void clear() { by_buffer_.clear(); }

 private:
  struct Held {
    Range tokens;
    std::vector<Region> regions;
  };
  std::map<int, Held> by_buffer_;
};

/// What the ops of a run read and write.
class RunRegions {
 public:
  bool conflicts(const OpRegions& op) const {
    return written_.overlaps(op.read) || written_.overlaps(op.written) ||
           read_.overlaps(op.written);
  }
  void add(const OpRegions& op) {
    read_.add(op.read);
    written_.add(op.written);
  }
  void clear() {
    read_.clear();
    written_.clear();
  }

 private:
  RegionSet read_, written_;
};

}  // namespace

OpRuns::OpRuns(const RankPlan& plan, const std::vector<Op>& ops) : first_(ops.size(), -1) {
  std::size_t begin = 0;
  RunRegions run;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    first_[i] = static_cast<int>(i);
    if (!may_join(plan, ops[i])) {
      begin = i + 1;
      run.clear();
      continue;
    }
    const OpRegions regions = regions_of(ops[i]);
    if (begin < i && (!may_follow(ops[begin], ops[i]) || run.conflicts(regions))) {
      begin = i;
      run.clear();
    }
    run.add(regions);
    first_[i] = static_cast<int>(begin);
  }
}

namespace {

bool computes(const Op& op) {
  return std::holds_alternative<Attend>(op.what) || std::holds_alternative<AttendBackward>(op.what);
}

/// Whether `op` waits for the op at `index` on the other lane, or for a later one there.
bool waits_for(const Op& op, std::size_t index) {
  return std::ranges::any_of(op.after,
                             [&](int named) { return static_cast<std::size_t>(named) >= index; });
}

bool moves_something(const Op& op) {
  const auto* exchange = std::get_if<Exchange>(&op.what);
  return exchange == nullptr || !exchange->sends.empty() || !exchange->receives.empty();
}

bool waits_for_exchange(const std::vector<Op>& ops, const Op& op) {
  return op.lane == Lane::compute && std::ranges::any_of(op.after, [&](int named) {
           const Op& before = ops[static_cast<std::size_t>(named)];
           return before.lane == Lane::communication && moves_something(before);
         });
}

}  // namespace

ExchangeTraits::ExchangeTraits(const std::vector<Op>& ops) : ops_(ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpRegions regions = regions_of(ops[i]);
    for (const auto* touched_regions : {&regions.read, &regions.written}) {
      for (const Region& region : *touched_regions) {
        const auto buffer = static_cast<std::size_t>(region.buffer);
        if (touches_.size() <= buffer) touches_.resize(buffer + 1);
        touches_[buffer].push_back({i, region});
      }
    }
  }
}

bool ExchangeTraits::is_alone(std::size_t exchange) const {
  const auto place = ops_.begin() + static_cast<std::ptrdiff_t>(exchange);
  const auto before = std::find_if(std::reverse_iterator(place), ops_.rend(), computes);
  if (before != ops_.rend()) {
    const auto index = static_cast<std::size_t>(before.base() - ops_.begin()) - 1;
    if (!waits_for(*place, index)) return false;
  }
  const auto behind = std::find_if(place, ops_.end(), computes);
  return behind == ops_.end() || waits_for(*behind, exchange);
}

bool ExchangeTraits::lands_early(std::size_t exchange) const {
  const OpRegions regions = regions_of(ops_[exchange]);
  return std::ranges::none_of(regions.written, [&](const Region& landing) {
    const std::vector<Touch>& touches = touches_[static_cast<std::size_t>(landing.buffer)];
    const auto end = std::ranges::lower_bound(touches, exchange, {}, &Touch::op);
    return std::any_of(touches.begin(), end,
                       [&](const Touch& before) { return overlap(landing, before.region); });
  });
}

EarlyRows find_early_rows(const std::vector<Op>& ops) {
  EarlyRows early;
  const auto waiting =
      std::ranges::find_if(ops, [&](const Op& op) { return waits_for_exchange(ops, op); });
  early.before = static_cast<std::size_t>(waiting - ops.begin());
  std::vector<OpRegions> pending;  // of ops that may still run at the wait
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto* attend = std::get_if<AttendBackward>(&ops[i].what);
    if (i >= early.before && attend != nullptr && ops[i].lane == Lane::compute) {
      const OpRegions rows = {{attend->dout, attend->o, attend->lse}, {}};
      const bool ready =
          std::ranges::none_of(pending, [&](const OpRegions& op) { return conflict(rows, op); });
      if (ready) early.ops.push_back(static_cast<int>(i));
    }
    if (i >= early.before || ops[i].lane == Lane::communication) {
      pending.push_back(regions_of(ops[i]));
    }
  }
  return early;
}

std::vector<TensorRole> tensors_that_messages_land_in(const RankPlan& plan) {
  std::vector<TensorRole> roles;
  for (const std::vector<Op>* ops : {&plan.forward, &plan.backward}) {
    for (const Op& op : *ops) {
      const auto* exchange = std::get_if<Exchange>(&op.what);
      if (exchange == nullptr) continue;
      for (const Message& message : exchange->receives) {
        const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(message.region.buffer)];
        if (buffer.external) roles.push_back(buffer.role);
      }
    }
  }
  return roles;
}

}  // namespace longca
