#include "parallel/executor/late_merging.h"

#include <algorithm>

#include "parallel/executor/op_regions.h"

namespace longca {
namespace {

bool overlaps_any(const std::vector<Range>& ranges, Range range) {
  return std::ranges::any_of(
      ranges, [&](Range r) { return std::max(r.begin, range.begin) < std::min(r.end, range.end); });
}

bool inside_any(const std::vector<Range>& ranges, Range range) {
  return std::ranges::any_of(ranges,
                             [&](Range r) { return r.begin <= range.begin && range.end <= r.end; });
}

}  // namespace

LateMerging::LateMerging(const RankPlan& plan, const std::vector<Op>& ops)
    : plan_(plan), allowed_(plan.buffers.size()), rows_(plan.buffers.size()) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    allowed_[i] = buffer.float32 && !buffer.external && !buffer.kept &&
                  (buffer.role == TensorRole::o || buffer.role == TensorRole::dq);
  }
  for (const Placement& placement : plan.results) forbid(placement.region);
  for (const Op& op : ops) look_at(op);
  forbid_unfinished();
  forbid_shared_lse(ops);
}

void LateMerging::write(const Region& into, bool first) {
  const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(into.buffer)];
  Rows& rows = rows_[static_cast<std::size_t>(into.buffer)];
  const bool overwrites = first && overlaps_any(rows.written, into.tokens);
  if (into.heads != Range{0, buffer.heads} || overwrites ||
      overlaps_any(rows.converted, into.tokens)) {
    forbid(into);
  }
  rows.written.push_back(into.tokens);
}

void LateMerging::pair(const Region& o, const Region& lse) {
  const Region heads{lse.buffer, {}, lse.heads};
  auto& known = rows_[static_cast<std::size_t>(o.buffer)].lse;
  if (!known) known = heads;
  if (*known != heads || lse.tokens != o.tokens) forbid(o);
}

void LateMerging::look_at(const Op& op) {
  if (const auto* attend = std::get_if<Attend>(&op.what)) {
    write(attend->o, attend->first);
    pair(attend->o, attend->lse);
    for (const Region& region : {attend->q, attend->k, attend->v}) forbid(region);
  } else if (const auto* back = std::get_if<AttendBackward>(&op.what)) {
    write(back->dq, back->first_dq);
    for (const Region& region :
         {back->dout, back->q, back->k, back->v, back->o, back->dk, back->dv})
      forbid(region);
  } else if (const auto* clear = std::get_if<Clear>(&op.what)) {
    const Region& region = clear->region;
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(region.buffer)];
    const Rows& rows = rows_[static_cast<std::size_t>(region.buffer)];
    if (region.heads != Range{0, buffer.heads} || overlaps_any(rows.written, region.tokens) ||
        overlaps_any(rows.converted, region.tokens)) {
      forbid(region);
    }
  } else if (const auto* convert = std::get_if<Convert>(&op.what)) {
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(convert->from.buffer)];
    if (convert->from.heads != Range{0, buffer.heads}) forbid(convert->from);
    rows_[static_cast<std::size_t>(convert->from.buffer)].converted.push_back(convert->from.tokens);
    forbid(convert->to);
  } else {
    const OpRegions regions = regions_of(op);
    for (const Region& region : regions.read) forbid(region);
    for (const Region& region : regions.written) forbid(region);
  }
}

void LateMerging::forbid_unfinished() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    for (const Range rows : rows_[i].written) {
      if (!inside_any(rows_[i].converted, rows)) allowed_[i] = false;
    }
  }
}

void LateMerging::forbid_shared_lse(const std::vector<Op>& ops) {
  std::vector<bool> looked_at(plan_.buffers.size());
  for (const Op& op : ops) {
    if (std::holds_alternative<Attend>(op.what) || std::holds_alternative<Clear>(op.what)) continue;
    for (const Region& region : regions_of(op).read) {
      looked_at[static_cast<std::size_t>(region.buffer)] = true;
    }
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto& lse = rows_[i].lse;
    if (lse && looked_at[static_cast<std::size_t>(lse->buffer)]) allowed_[i] = false;
  }
}

}  // namespace longca
