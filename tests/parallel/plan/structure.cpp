#include "parallel/plan/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "parallel/plan/accesses.h"

namespace longca::testing {
namespace {

bool same_shape(const Region& a, const Region& b) {
  return a.tokens.size() == b.tokens.size() && a.heads.size() == b.heads.size();
}

/// Checks the ops of one list; the first complaint about an op is its fault.
class ListCheck {
 public:
  ListCheck(const RankPlan& plan, bool backward, std::vector<std::string>& faults)
      : plan_(plan), backward_(backward), faults_(faults) {}

  void run() {
    const auto& ops = ops_of(plan_, backward_);
    for (op_ = 0; op_ < std::ssize(ops); ++op_) {
      complained_ = false;
      const Op& op = ops[static_cast<std::size_t>(op_)];
      for (const int before : op.after) {
        expect(before >= 0 && before < op_, "waits for op {}, which is not before it", before);
      }
      const Accesses accesses = accesses_of(op);
      for (const Region& region : accesses.reads) check_inside(region);
      for (const Region& region : accesses.writes) check_inside(region);
      if (complained_) continue;  // the checks below read the buffers
      for (const Region& region : accesses.writes) check_may_write(region);
      std::visit([&](const auto& what) { check(what, op.lane); }, op.what);
    }
  }

 private:
  template <typename... Args>
  void expect(bool condition, fmt::format_string<Args...> format, Args&&... args) {
    if (condition || complained_) return;
    complained_ = true;
    faults_.push_back(fmt::format("{}: {}", name_of(plan_, backward_, op_),
                                  fmt::format(format, std::forward<Args>(args)...)));
  }

  void check_inside(const Region& region) {
    const bool exists = region.buffer >= 0 && region.buffer < std::ssize(plan_.buffers);
    expect(exists, "buffer {} of {}", region.buffer, plan_.buffers.size());
    if (!exists) return;
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(region.buffer)];
    const auto inside = [](Range range, std::int64_t limit) {
      return range.begin >= 0 && range.begin <= range.end && range.end <= limit;
    };
    expect(inside(region.tokens, buffer.tokens) && inside(region.heads, buffer.heads),
           "{} is outside the buffer of {} × {}", name_of(plan_, region), buffer.tokens,
           buffer.heads);
  }

  void check_may_write(const Region& region) {
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(region.buffer)];
    const std::array inputs = {TensorRole::q, TensorRole::k, TensorRole::v, TensorRole::dout};
    const bool input =
        std::find(inputs.begin(), inputs.end(), buffer.role) != inputs.end() ||
        (backward_ && (buffer.role == TensorRole::o || buffer.role == TensorRole::lse));
    expect(!(buffer.external && input), "writes {}, an input of the caller",
           name_of(plan_, region));
  }

  void check_role(const Region& region, TensorRole role) {
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(region.buffer)];
    expect(buffer.role == role, "takes {} as {}, but it is {}", name_of(plan_, region),
           to_string(role), to_string(buffer.role));
  }

  void check_shapes(const Region& a, const Region& b) {
    expect(same_shape(a, b), "{} and {} differ in shape", name_of(plan_, a), name_of(plan_, b));
  }

  void check_mask(int mask, const Region& q, const Region& k) {
    expect(mask >= 0 && mask < std::ssize(plan_.masks), "mask {} of {}", mask, plan_.masks.size());
    if (complained_) return;
    const Mask& m = plan_.masks[static_cast<std::size_t>(mask)];
    expect(m.q_tokens() == q.tokens.size() && m.k_tokens() == k.tokens.size(),
           "a mask of {} × {} for {} queries × {} keys", m.q_tokens(), m.k_tokens(),
           q.tokens.size(), k.tokens.size());
    expect(!k.heads.empty() && q.heads.size() % k.heads.size() == 0 && !q.heads.empty(),
           "{} query heads on {} KV heads", q.heads.size(), k.heads.size());
  }

  void check(const Exchange& exchange, Lane lane) {
    expect(lane == Lane::communication, "an exchange on the compute lane");
    for (const auto* list : {&exchange.sends, &exchange.receives}) {
      for (const Message& m : *list) {
        expect(m.peer >= 0 && m.peer < plan_.ranks && m.peer != plan_.rank,
               "a message with rank {} of {}", m.peer, plan_.ranks);
      }
    }
  }

  void check(const Copy& copy, Lane) {
    check_shapes(copy.from, copy.to);
    expect(is_float32(plan_, copy.from) == is_float32(plan_, copy.to),
           "copies between element types");
  }

  void check(const Attend& a, Lane lane) {
    expect(lane == Lane::compute, "computes on the communication lane");
    check_role(a.q, TensorRole::q);
    check_role(a.k, TensorRole::k);
    check_role(a.v, TensorRole::v);
    check_role(a.o, TensorRole::o);
    check_role(a.lse, TensorRole::lse);
    check_shapes(a.q, a.o);
    check_shapes(a.q, a.lse);
    check_shapes(a.k, a.v);
    check_mask(a.mask, a.q, a.k);
    expect(a.first || is_float32(plan_, a.o), "merges into {}, which is not float32",
           name_of(plan_, a.o));
  }

  void check(const AttendBackward& a, Lane lane) {
    expect(lane == Lane::compute, "computes on the communication lane");
    const std::pair<const Region*, TensorRole> roles[] = {
        {&a.dout, TensorRole::dout}, {&a.q, TensorRole::q},   {&a.k, TensorRole::k},
        {&a.v, TensorRole::v},       {&a.o, TensorRole::o},   {&a.lse, TensorRole::lse},
        {&a.dq, TensorRole::dq},     {&a.dk, TensorRole::dk}, {&a.dv, TensorRole::dv}};
    for (const auto& [region, role] : roles) check_role(*region, role);
    for (const Region* region : {&a.dout, &a.o, &a.lse, &a.dq}) check_shapes(a.q, *region);
    for (const Region* region : {&a.v, &a.dk, &a.dv}) check_shapes(a.k, *region);
    check_mask(a.mask, a.q, a.k);
    expect(a.first_dq || is_float32(plan_, a.dq), "adds to dq that is not float32");
    expect(a.first_dkv || (is_float32(plan_, a.dk) && is_float32(plan_, a.dv)),
           "adds to dk, dv that are not float32");
  }

  void check(const Add& add, Lane) {
    check_shapes(add.from, add.into);
    expect(is_float32(plan_, add.into), "adds to {}, which is not float32",
           name_of(plan_, add.into));
  }

  void check(const Convert& convert, Lane) {
    check_shapes(convert.from, convert.to);
    expect(is_float32(plan_, convert.from), "converts {}, which is not float32",
           name_of(plan_, convert.from));
  }

  void check(const Total& total, Lane lane) {
    expect(lane == Lane::compute, "computes on the communication lane");
    for (const Total::Part& part : total.parts) {
      expect(is_float32(plan_, part.from), "adds {}, which is not float32",
             name_of(plan_, part.from));
      expect(part.from.heads.size() == total.to.heads.size() && part.row >= 0 &&
                 part.row + part.from.tokens.size() <= total.to.tokens.size(),
             "{} does not fit at row {} of {}", name_of(plan_, part.from), part.row,
             name_of(plan_, total.to));
    }
  }

  void check(const Clear&, Lane) {}

  void check(const JoinSinks& join, Lane lane) {
    expect(lane == Lane::compute, "computes on the communication lane");
    check_role(join.o, TensorRole::o);
    check_role(join.lse, TensorRole::lse);
    check_shapes(join.o, join.lse);
  }

  void check(const SinkGradients& gradients, Lane lane) {
    expect(lane == Lane::compute, "computes on the communication lane");
    check_role(gradients.dout, TensorRole::dout);
    check_role(gradients.o, TensorRole::o);
    check_role(gradients.lse, TensorRole::lse);
    check_shapes(gradients.o, gradients.dout);
    check_shapes(gradients.o, gradients.lse);
  }

  const RankPlan& plan_;
  bool backward_;
  std::vector<std::string>& faults_;
  int op_ = 0;
  bool complained_ = false;
};

void check_buffers(const RankPlan& plan, std::vector<std::string>& faults) {
  std::array<int, 9> externals{};
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.external) ++externals[static_cast<std::size_t>(buffer.role)];
    if (buffer.external && buffer.float32 && buffer.role != TensorRole::lse) {
      faults.push_back(
          fmt::format("rank {}: '{}' is external and float32", plan.rank, buffer.name));
    }
  }
  for (std::size_t role = 0; role < externals.size(); ++role) {
    if (externals[role] > 1) {
      faults.push_back(fmt::format("rank {}: {} external buffers of {}", plan.rank, externals[role],
                                   to_string(static_cast<TensorRole>(role))));
    }
  }
}

void check_placements(const RankPlan& plan, std::vector<std::string>& faults) {
  for (const Placement& placement : plan.results) {
    const Region& region = placement.region;
    std::int64_t tokens = 0;
    for (const Range range : placement.tokens) tokens += range.size();
    const bool exists = region.buffer >= 0 && region.buffer < std::ssize(plan.buffers);
    const auto* buffer = exists ? &plan.buffers[static_cast<std::size_t>(region.buffer)] : nullptr;
    if (!exists || buffer->role != placement.role || region.tokens.size() != tokens ||
        region.heads.size() != placement.heads.size() || region.tokens.begin < 0 ||
        region.tokens.end > buffer->tokens || region.heads.begin < 0 ||
        region.heads.end > buffer->heads) {
      faults.push_back(fmt::format("rank {}: the placement of {} does not fit its buffer",
                                   plan.rank, to_string(placement.role)));
    } else if (buffer->float32 && placement.role != TensorRole::lse) {
      faults.push_back(fmt::format("rank {}: the result {} is left in float32", plan.rank,
                                   to_string(placement.role)));
    }
  }
}

/// Which ops have ended before an op begins.
std::vector<std::vector<bool>> predecessors(const std::vector<Op>& ops) {
  std::vector<std::vector<bool>> before(ops.size(), std::vector<bool>(ops.size(), false));
  std::array<int, 2> last = {-1, -1};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::vector<int> direct = ops[i].after;
    int& previous = last[static_cast<std::size_t>(ops[i].lane)];
    if (previous >= 0) direct.push_back(previous);
    previous = static_cast<int>(i);
    for (const int p : direct) {
      const auto at = static_cast<std::size_t>(p);
      before[i][at] = true;
      for (std::size_t k = 0; k < at; ++k) before[i][k] = before[i][k] || before[at][k];
    }
  }
  return before;
}

const Region* conflict(const std::vector<Region>& writes, const std::vector<Region>& others) {
  for (const Region& w : writes) {
    for (const Region& other : others) {
      if (overlap(w, other)) return &other;
    }
  }
  return nullptr;
}

/// Regions of one op that meet though one is written.
const Region* conflict_inside(const Accesses& accesses) {
  if (const Region* met = conflict(accesses.writes, accesses.reads)) return met;
  for (std::size_t i = 0; i < accesses.writes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(accesses.writes[i], accesses.writes[j])) return &accesses.writes[i];
    }
  }
  return nullptr;
}

}  // namespace

void check_structure(const RankPlan& plan, std::vector<std::string>& faults) {
  check_buffers(plan, faults);
  ListCheck(plan, false, faults).run();
  ListCheck(plan, true, faults).run();
  check_placements(plan, faults);
}

void check_races(const RankPlan& plan, bool backward, std::vector<std::string>& faults) {
  const auto& ops = ops_of(plan, backward);
  const auto before = predecessors(ops);
  std::vector<Accesses> accesses;
  for (const Op& op : ops) accesses.push_back(accesses_of(op));
  for (std::size_t j = 0; j < ops.size(); ++j) {
    if (const Region* met = conflict_inside(accesses[j])) {
      faults.push_back(fmt::format("{}: uses {} twice at once",
                                   name_of(plan, backward, static_cast<int>(j)),
                                   name_of(plan, *met)));
    }
    for (std::size_t i = 0; i < j; ++i) {
      if (before[j][i]) continue;
      const Region* met = conflict(accesses[i].writes, accesses[j].reads);
      if (met == nullptr) met = conflict(accesses[i].writes, accesses[j].writes);
      if (met == nullptr) met = conflict(accesses[j].writes, accesses[i].reads);
      if (met == nullptr) continue;
      faults.push_back(fmt::format("{}: races with op {} ({}) for {}",
                                   name_of(plan, backward, static_cast<int>(j)), i, kind_of(ops[i]),
                                   name_of(plan, *met)));
      break;
    }
  }
}

}  // namespace longca::testing
