#include "parallel/executor/copy_runs.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "mask/band.h"

namespace longca {
namespace {

bool touch(const Region& a, const Region& b) {
  return a.buffer == b.buffer && !intersect(a.tokens, b.tokens).empty() &&
         !intersect(a.heads, b.heads).empty();
}

bool depend(const Copy& a, const Copy& b) {
  return touch(a.to, b.from) || touch(a.to, b.to) || touch(a.from, b.to);
}

bool is_lse(const RankPlan& plan, const Region& region) {
  return plan.buffers[static_cast<std::size_t>(region.buffer)].role == TensorRole::lse;
}

/// Whether a copy can be made together with the `run` of ops right before it.
bool joins(std::span<const Op> run, const Op& op) {
  const Op& first = run.front();
  // On the other lane exchanges end on the host, just before the copy that needs them.
  if (op.lane != Lane::compute || first.lane != Lane::compute) return false;
  const bool waits = std::ranges::any_of(op.after, [&](int before) {
    return std::ranges::find(first.after, before) == first.after.end();
  });
  return !waits && std::ranges::none_of(run, [&](const Op& earlier) {
    return depend(std::get<Copy>(earlier.what), std::get<Copy>(op.what));
  });
}

}  // namespace

CopyRuns::CopyRuns(const RankPlan& plan, const std::vector<Op>& ops) : first_(ops.size(), -1) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    first_[i] = static_cast<int>(i);
    const auto* copy = std::get_if<Copy>(&ops[i].what);
    if (copy == nullptr || is_lse(plan, copy->from)) {
      begin = i + 1;
      continue;
    }
    if (begin < i && !joins(std::span(ops).subspan(begin, i - begin), ops[i])) begin = i;
    first_[i] = static_cast<int>(begin);
  }
}

}  // namespace longca
