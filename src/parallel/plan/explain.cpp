#include "parallel/plan/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/counted.h"
#include "core/number_runs.h"
#include "parallel/plan/lane_order.h"

namespace longca {
namespace {

/// "full", "causal" …, "3 slices", with " in blocks" behind where there are block lists.
std::string shape_of(const Mask& mask) {
  const auto slices = mask.slices();
  std::string shape = fmt::format("{} slices", slices.size());
  if (slices.size() == 1) {
    const MaskSlice& s = slices[0];
    const bool whole = s.q_begin == 0 && s.q_end == mask.q_tokens() && s.k_begin == 0 &&
                       s.k_end == mask.k_tokens();
    shape = whole ? std::string(to_string(s.type)) : "1 slice";
  }
  return mask.blocks() == nullptr ? shape : shape + " in blocks";
}

/// "step 3", "steps 1, 2".
std::string named(const char* what, const std::set<int>& list) {
  return fmt::format("{}{} {}", what, list.size() == 1 ? "" : "s", number_runs(list));
}

/// What happens in one step of a pass.
class StepText {
 public:
  StepText(const RankPlan& plan, int head_dim, DType dtype)
      : plan_(plan), head_dim_(head_dim), dtype_(dtype) {}

  void add(const Attend& a) { add_piece("attend", a.q, a.k, a.mask); }
  void add(const AttendBackward& a) { add_piece("gradients of", a.q, a.k, a.mask); }
  void add(const Copy& c) { moved_["copy"] += bytes(c.from); }
  void add(const Add& a) { moved_["add"] += bytes(a.from); }
  void add(const Convert& c) { moved_["round"] += bytes(c.from); }
  void add(const Total& t) {
    for (const Total::Part& part : t.parts) moved_["add and round"] += bytes(part.from);
  }
  void add(const Clear& c) { moved_["clear"] += bytes(c.region); }
  void add(const JoinSinks& j) { moved_["join sinks to"] += bytes(j.o); }
  void add(const SinkGradients& g) { moved_["gradients of sinks by"] += bytes(g.o); }

  void add(const Exchange& e, const std::set<int>& beside) {
    std::vector<std::string_view> roles;
    std::vector<std::string> sides;
    for (const auto& [preposition, messages] : {std::pair{"to", &e.sends}, {"from", &e.receives}}) {
      for (const Message& m : *messages) {
        const auto role = to_string(plan_.buffers[static_cast<std::size_t>(m.region.buffer)].role);
        if (std::find(roles.begin(), roles.end(), role) == roles.end()) roles.push_back(role);
      }
      if (!messages->empty()) sides.push_back(side(preposition, *messages));
    }
    exchanges_.push_back(fmt::format("{} of {}: {}; beside {}", to_string(e.pattern),
                                     fmt::join(roles, ", "), fmt::join(sides, " and "),
                                     beside.empty() ? "nothing" : named("step", beside)));
  }

  std::string text() const {
    std::vector<std::string> all;
    for (const auto& [piece, times] : pieces_) {
      all.push_back(times == 1 ? piece : fmt::format("{} × ({})", times, piece));
    }
    for (const auto& [verb, count] : moved_) {
      all.push_back(fmt::format("{} {}", verb, plan_bytes(count)));
    }
    all.insert(all.end(), exchanges_.begin(), exchanges_.end());
    return fmt::format("{}", fmt::join(all, " | "));
  }

 private:
  std::int64_t bytes(const Region& region) const {
    return region_bytes(plan_, region, head_dim_, dtype_);
  }

  void add_piece(const char* verb, const Region& q, const Region& k, int mask) {
    const Mask& m = plan_.masks[static_cast<std::size_t>(mask)];
    std::string text =
        fmt::format("{} {} × {}, {}, {} cells, heads {}:{}", verb, m.q_tokens(), m.k_tokens(),
                    shape_of(m), plan_cells(m.mean_area()), q.heads.size(), k.heads.size());
    const auto known = std::find_if(pieces_.begin(), pieces_.end(),
                                    [&](const auto& piece) { return piece.first == text; });
    if (known != pieces_.end()) {
      ++known->second;
    } else {
      pieces_.emplace_back(std::move(text), 1);
    }
  }

  std::string side(const char* preposition, const std::vector<Message>& messages) const {
    std::set<int> peers;
    std::int64_t sum = 0;
    for (const Message& m : messages) {
      peers.insert(m.peer);
      sum += bytes(m.region);
    }
    return fmt::format("{} {} {}", plan_bytes(sum), preposition, named("rank", peers));
  }

  const RankPlan& plan_;
  int head_dim_;
  DType dtype_;
  std::vector<std::pair<std::string, int>> pieces_;  ///< a call's text and how often it occurs
  std::map<std::string, std::int64_t> moved_;        ///< bytes by verb
  std::vector<std::string> exchanges_;
};

/// The steps whose computing an exchange may overlap with.
std::set<int> steps_beside(const std::vector<Op>& ops, const LaneOrder& order, int exchange) {
  std::set<int> steps;
  for (int i = 0; i < std::ssize(ops); ++i) {
    const Op& op = ops[static_cast<std::size_t>(i)];
    const bool computes =
        std::holds_alternative<Attend>(op.what) || std::holds_alternative<AttendBackward>(op.what);
    if (computes && order.unordered(exchange, i)) steps.insert(op.step);
  }
  return steps;
}

std::string explain_pass(const char* name, const RankPlan& plan, const std::vector<Op>& ops,
                         int head_dim, DType dtype) {
  const LaneOrder order(ops);
  std::map<int, StepText> steps;
  for (int i = 0; i < std::ssize(ops); ++i) {
    const Op& op = ops[static_cast<std::size_t>(i)];
    StepText& step = steps.try_emplace(op.step, plan, head_dim, dtype).first->second;
    std::visit(
        [&](const auto& what) {
          if constexpr (std::is_same_v<std::decay_t<decltype(what)>, Exchange>) {
            step.add(what, steps_beside(ops, order, i));
          } else {
            step.add(what);
          }
        },
        op.what);
  }
  const PlanSums sums = sum_plan(plan, ops, head_dim, dtype);
  std::string text =
      fmt::format("{}: {}, {} cells × query heads, sends {} in {} messages, receives {}\n", name,
                  counted(steps.size(), "step"), plan_cells(sums.cells),
                  plan_bytes(sums.bytes_sent), sums.messages, plan_bytes(sums.bytes_received));
  for (const auto& [number, step] : steps) {
    text += fmt::format("  step {}: {}\n", number, step.text());
  }
  return text;
}

}  // namespace

std::string plan_bytes(std::int64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.4g} {}", value, kUnits[unit]);
}

std::string plan_cells(double cells) {
  constexpr std::array kUnits = {"", " M", " G", " T"};
  std::size_t unit = 0;
  for (double least = 1e6; cells >= least && unit + 1 < kUnits.size(); ++unit) {
    cells /= unit == 0 ? 1e6 : 1e3;
    least = 1e3;
  }
  return unit == 0 ? fmt::format("{:.0f}", cells) : fmt::format("{:.4g}{}", cells, kUnits[unit]);
}

std::string name_step(const RankPlan& plan, const Op& op) {
  std::string name = fmt::format("step {}", op.step);
  const auto add_shape = [&](const auto& attend) {
    const Mask& mask = plan.masks[static_cast<std::size_t>(attend.mask)];
    name += fmt::format(" ({} × {}, {} {}{})", mask.q_tokens(), mask.k_tokens(),
                        mask.slices().size(), mask.slices().size() == 1 ? "slice" : "slices",
                        mask.blocks() ? " cut by blocks" : "");
  };
  if (const auto* attend = std::get_if<Attend>(&op.what)) add_shape(*attend);
  if (const auto* attend = std::get_if<AttendBackward>(&op.what)) add_shape(*attend);
  return name;
}

std::string explain(const RankPlan& plan, int head_dim, DType dtype) {
  std::int64_t all = 0;
  std::int64_t callers = 0;
  for (int i = 0; i < std::ssize(plan.buffers); ++i) {
    const std::int64_t bytes = region_bytes(plan, plan.whole(i), head_dim, dtype);
    all += bytes;
    if (plan.buffers[static_cast<std::size_t>(i)].external) callers += bytes;
  }
  std::string text =
      fmt::format("rank {} of {}: {} buffers, {}, of which {} are the caller's\n", plan.rank,
                  plan.ranks, plan.buffers.size(), plan_bytes(all), plan_bytes(callers));
  for (const std::string& note : plan.notes) text += fmt::format("  {}\n", note);
  text += explain_pass("forward", plan, plan.forward, head_dim, dtype);
  if (!plan.backward.empty()) {
    text += explain_pass("backward", plan, plan.backward, head_dim, dtype);
  }
  return text;
}

}  // namespace longca
