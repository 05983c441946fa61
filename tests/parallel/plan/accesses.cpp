#include "parallel/plan/accesses.h"

#include <fmt/format.h>

#include "mask/mask_slice.h"

namespace longca::testing {
namespace {

struct Visit {
  Accesses operator()(const Exchange& e) const {
    Accesses a;
    for (const Message& m : e.sends) a.reads.push_back(m.region);
    for (const Message& m : e.receives) a.writes.push_back(m.region);
    return a;
  }
  Accesses operator()(const Copy& c) const { return {{c.from}, {c.to}}; }
  Accesses operator()(const Attend& a) const { return {{a.q, a.k, a.v}, {a.o, a.lse}}; }
  Accesses operator()(const AttendBackward& a) const {
    return {{a.dout, a.q, a.k, a.v, a.o, a.lse}, {a.dq, a.dk, a.dv}};
  }
  Accesses operator()(const Add& a) const { return {{a.from}, {a.into}}; }
  Accesses operator()(const Convert& c) const { return {{c.from}, {c.to}}; }
  Accesses operator()(const Total& t) const {
    Accesses a{{}, {t.to}};
    // Read, and their values may be lost.
    for (const Total::Part& part : t.parts) a.writes.push_back(part.from);
    return a;
  }
  Accesses operator()(const Clear& c) const { return {{}, {c.region}}; }
  Accesses operator()(const JoinSinks& j) const { return {{}, {j.o, j.lse}}; }
  Accesses operator()(const SinkGradients& g) const { return {{g.dout, g.o, g.lse}, {}}; }
};

struct NameOfKind {
  std::string operator()(const Exchange& e) const {
    return fmt::format("exchange, {}", to_string(e.pattern));
  }
  std::string operator()(const Copy&) const { return "copy"; }
  std::string operator()(const Attend&) const { return "attend"; }
  std::string operator()(const AttendBackward&) const { return "attend backward"; }
  std::string operator()(const Add&) const { return "add"; }
  std::string operator()(const Convert&) const { return "convert"; }
  std::string operator()(const Total&) const { return "total"; }
  std::string operator()(const Clear&) const { return "clear"; }
  std::string operator()(const JoinSinks&) const { return "join sinks"; }
  std::string operator()(const SinkGradients&) const { return "gradients of sinks"; }
};

}  // namespace

Accesses accesses_of(const Op& op) {
  return std::visit(Visit{}, op.what);
}

bool overlap(const Region& a, const Region& b) {
  return a.buffer == b.buffer && !intersect(a.tokens, b.tokens).empty() &&
         !intersect(a.heads, b.heads).empty();
}

std::string kind_of(const Op& op) {
  return std::visit(NameOfKind{}, op.what);
}

std::string name_of(const RankPlan& plan, bool backward, int op) {
  const Op& which = ops_of(plan, backward)[static_cast<std::size_t>(op)];
  return fmt::format("rank {}, {} op {} ({}, step {})", plan.rank,
                     backward ? "backward" : "forward", op, kind_of(which), which.step);
}

std::string name_of(const RankPlan& plan, const Region& region) {
  return fmt::format("rows [{}, {}) × heads [{}, {}) of '{}'", region.tokens.begin,
                     region.tokens.end, region.heads.begin, region.heads.end,
                     plan.buffers[static_cast<std::size_t>(region.buffer)].name);
}

}  // namespace longca::testing
