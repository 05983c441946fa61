#include "parallel/executor/op_runs.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <variant>

#include "parallel/executor/op_regions.h"

namespace longca {
namespace {

bool is_lse(const RankPlan& plan, const Region& region) {
  return plan.buffers[static_cast<std::size_t>(region.buffer)].role == TensorRole::lse;
}

bool may_join(const RankPlan& plan, const Op& op) {
  if (const auto* copy = std::get_if<Copy>(&op.what)) return !is_lse(plan, copy->from);
  return std::holds_alternative<Total>(op.what);
}

/// Whether an op can be made together with the `run` of ops right before it.
bool joins(std::span<const Op> run, const Op& op) {
  const Op& first = run.front();
  if (op.what.index() != first.what.index()) return false;
  // On the other lane exchanges end on the host, just before the copy that needs them.
  if (op.lane != Lane::compute || first.lane != Lane::compute) return false;
  const bool waits = std::ranges::any_of(op.after, [&](int before) {
    return std::ranges::find(first.after, before) == first.after.end();
  });
  const OpRegions regions = regions_of(op);
  return !waits && std::ranges::none_of(run, [&](const Op& earlier) {
    return conflict(regions_of(earlier), regions);
  });
}

}  // namespace

OpRuns::OpRuns(const RankPlan& plan, const std::vector<Op>& ops) : first_(ops.size(), -1) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    first_[i] = static_cast<int>(i);
    if (!may_join(plan, ops[i])) {
      begin = i + 1;
      continue;
    }
    if (begin < i && !joins(std::span(ops).subspan(begin, i - begin), ops[i])) begin = i;
    first_[i] = static_cast<int>(begin);
  }
}

}  // namespace longca
