#include "parallel/executor/late_merging.h"

#include <algorithm>
#include <tuple>

#include "parallel/executor/op_analysis.h"

namespace longca {
namespace {

bool overlaps_any(const std::vector<Region>& regions, const Region& region) {
  return std::ranges::any_of(regions, [&](const Region& r) { return overlap(r, region); });
}

bool contains(Range whole, Range part) {
  return whole.begin <= part.begin && part.end <= whole.end;
}

bool inside_any(const std::vector<Region>& regions, const Region& region) {
  return std::ranges::any_of(regions, [&](const Region& r) {
    return contains(r.tokens, region.tokens) && contains(r.heads, region.heads);
  });
}

}  // namespace

LateMerging::LateMerging(const RankPlan& plan, const std::vector<Op>& ops, bool whole_heads)
    : plan_(plan),
      ops_(ops),
      allowed_(plan.buffers.size()),
      whole_heads_(whole_heads),
      uses_(plan.buffers.size()) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    allowed_[i] = buffer.float32 && !buffer.external && !buffer.kept &&
                  (buffer.role == TensorRole::o || buffer.role == TensorRole::dq);
  }
  for (const Placement& placement : plan.results) forbid(placement.region);
  for (std::size_t i = 0; i < ops.size(); ++i) note_op(i);
  forbid_unfinished();
  forbid_shared_lse();
}

bool LateMerging::has_one_place(int buffer) const {
  const Uses& uses = uses_[static_cast<std::size_t>(buffer)];
  if (!allowed(buffer) || uses.places.empty()) return false;
  const auto offset = [&](std::size_t i) {
    const Region &from = uses.converted[i], &to = uses.places[i];
    return std::tuple(to.buffer, to.tokens.begin - from.tokens.begin,
                      to.heads.begin - from.heads.begin);
  };
  for (std::size_t i = 1; i < uses.places.size(); ++i) {
    if (offset(i) != offset(0)) return false;
  }
  for (std::size_t i = 0; i < uses.last_op; ++i) {
    const auto* convert = std::get_if<Convert>(&ops_[i].what);
    if (convert != nullptr && convert->from.buffer == buffer) continue;
    const OpRegions regions = regions_of(ops_[i]);
    for (const auto* list : {&regions.read, &regions.written}) {
      for (const Region& region : *list) {
        if (overlaps_any(uses.places, region)) return false;
      }
    }
  }
  return true;
}

std::optional<MergeQueue::Joint> LateMerging::join(MergeQueue& queue, const Region& region,
                                                   bool whole) const {
  const Box box{region.tokens, region.heads};
  const auto joint = queue.joint(box);
  if (!joint || (whole && joint->held != box)) return std::nullopt;
  if (meets_three(joint->held == box ? region : plan_.whole(region.buffer))) return std::nullopt;
  queue.join(box, *joint);
  return joint;
}

bool LateMerging::meets_three(const Region& region) const {
  const auto common = [](const Region& a, const Region& b) {
    return Region{a.buffer, intersect(a.tokens, b.tokens), intersect(a.heads, b.heads)};
  };
  const std::vector<Region>& written = uses_[static_cast<std::size_t>(region.buffer)].written;
  for (auto first = written.begin(); first != written.end(); ++first) {
    if (!overlap(*first, region)) continue;
    const Region of_one = common(*first, region);
    for (auto second = first + 1; second != written.end(); ++second) {
      if (!overlap(*second, of_one)) continue;
      const Region of_two = common(*second, of_one);
      const auto meets = [&](const Region& third) { return overlap(third, of_two); };
      if (std::any_of(second + 1, written.end(), meets)) return true;
    }
  }
  return false;
}

void LateMerging::note_write(const Region& into, bool first) {
  Uses& uses = uses_of(into);
  const bool some_heads =
      into.heads != Range{0, plan_.buffers[static_cast<std::size_t>(into.buffer)].heads};
  const bool overwrites = first && overlaps_any(uses.written, into);
  if ((whole_heads_ && some_heads) || overwrites || overlaps_any(uses.converted, into)) {
    forbid(into);
  }
  uses.written.push_back(into);
}

void LateMerging::note_lse(const Region& o, const Region& lse) {
  const Region base{lse.buffer, {}, {lse.heads.begin - o.heads.begin, 0}};
  auto& known = uses_of(o).lse;
  if (!known) known = base;
  if (*known != base || lse.tokens != o.tokens) forbid(o);
}

void LateMerging::note_op(std::size_t index) {
  const Op& op = ops_[index];
  if (const auto* attend = std::get_if<Attend>(&op.what)) {
    note_write(attend->o, attend->first);
    note_lse(attend->o, attend->lse);
    for (const Region& region : {attend->q, attend->k, attend->v}) forbid(region);
  } else if (const auto* back = std::get_if<AttendBackward>(&op.what)) {
    note_write(back->dq, back->first_dq);
    for (const Region& region :
         {back->dout, back->q, back->k, back->v, back->o, back->dk, back->dv})
      forbid(region);
  } else if (const auto* clear = std::get_if<Clear>(&op.what)) {
    const Uses& uses = uses_of(clear->region);
    if (overlaps_any(uses.written, clear->region) || overlaps_any(uses.converted, clear->region)) {
      forbid(clear->region);
    }
  } else if (const auto* convert = std::get_if<Convert>(&op.what)) {
    Uses& uses = uses_of(convert->from);
    uses.converted.push_back(convert->from);
    uses.places.push_back(convert->to);
    uses.last_op = index;
    forbid(convert->to);
  } else {
    const OpRegions regions = regions_of(op);
    for (const Region& region : regions.read) forbid(region);
    for (const Region& region : regions.written) forbid(region);
  }
}

void LateMerging::forbid_unfinished() {
  for (const Uses& uses : uses_) {
    for (const Region& region : uses.written) {
      if (!inside_any(uses.converted, region)) forbid(region);
    }
  }
}

void LateMerging::forbid_shared_lse() {
  std::vector<bool> looked_at(plan_.buffers.size());
  for (const Op& op : ops_) {
    if (std::holds_alternative<Attend>(op.what) || std::holds_alternative<Clear>(op.what)) continue;
    for (const Region& region : regions_of(op).read) {
      looked_at[static_cast<std::size_t>(region.buffer)] = true;
    }
  }
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const auto& lse = uses_[i].lse;
    if (lse && looked_at[static_cast<std::size_t>(lse->buffer)]) allowed_[i] = false;
  }
}

}  // namespace longca
