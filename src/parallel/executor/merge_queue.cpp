#include "parallel/executor/merge_queue.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace longca {
namespace {

bool boxes_meet(Range a, Range b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

bool boxes_meet(const Box& a, const Box& b) {
  return boxes_meet(a.rows, b.rows) && boxes_meet(a.heads, b.heads);
}

bool holds(Range whole, Range part) {
  return whole.begin <= part.begin && part.end <= whole.end;
}

bool holds(const Box& whole, const Box& part) {
  return holds(whole.rows, part.rows) && holds(whole.heads, part.heads);
}

Range around(Range a, Range b) {
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

std::int64_t area(const Box& box) {
  return box.rows.size() * box.heads.size();
}

/// Cuts `range` at the ends of others.
std::vector<Range> cut_at(Range range, const std::vector<Range>& others) {
  std::vector<std::int64_t> cuts = {range.begin, range.end};
  for (const Range other : others) {
    for (const std::int64_t at : {other.begin, other.end}) {
      if (range.begin < at && at < range.end) cuts.push_back(at);
    }
  }
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Range> pieces;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) pieces.push_back({cuts[i], cuts[i + 1]});
  return pieces;
}

}  // namespace

std::vector<MergeCall> MergeQueue::pieces(const Box& box) const {
  std::vector<Range> rows, heads;
  const auto note = [&](const Box& other) {
    if (!boxes_meet(box, other)) return;
    rows.push_back(other.rows);
    heads.push_back(other.heads);
  };
  for (const WaitingPart& part : waiting_) note(part.box);
  for (const Box& merged : merged_) note(merged);

  std::vector<MergeCall> calls;
  for (const Range head_piece : cut_at(box.heads, heads)) {
    for (const Range row_piece : cut_at(box.rows, rows)) {
      MergeCall call{{row_piece, head_piece}, {}, false};
      for (const WaitingPart& part : waiting_) {
        const bool joined = std::ranges::any_of(
            call.parts, [&](const WaitingPart& other) { return other.slot == part.slot; });
        if (holds(part.box, call.box) && !joined) call.parts.push_back(part);
      }
      call.accumulator =
          std::ranges::any_of(merged_, [&](const Box& merged) { return holds(merged, call.box); });
      calls.push_back(std::move(call));
    }
  }
  return calls;
}

std::optional<MergeQueue::Joint> MergeQueue::joint(const Box& box) const {
  std::optional<Joint> joint;
  std::int64_t places = 0;
  for (const MergeCall& call : pieces(box)) {
    if (call.accumulator || call.parts.size() > 1) return std::nullopt;
    if (call.parts.empty()) continue;
    const int slot = call.parts.front().slot;
    if (!joint) joint = {slot, call.box};
    if (joint->slot != slot) return std::nullopt;
    joint->held = {around(joint->held.rows, call.box.rows),
                   around(joint->held.heads, call.box.heads)};
    places += area(call.box);
  }
  if (!joint || places != area(joint->held)) return std::nullopt;
  if (joint->slot != 0 && joint->held != box) return std::nullopt;
  return joint;
}

MergeQueue::Added MergeQueue::add(const Box& box) {
  const auto taken = [&](int slot) {
    return std::ranges::any_of(waiting_, [&](const WaitingPart& part) {
      return part.slot == slot && boxes_meet(part.box, box);
    });
  };
  Added added;
  while (added.slot < max_slots_ && taken(added.slot)) ++added.slot;
  if (added.slot == max_slots_) {
    Box all = box;
    for (const WaitingPart& part : waiting_) {
      all = {around(all.rows, part.box.rows), around(all.heads, part.box.heads)};
    }
    added.before = pieces(all);
    std::erase_if(added.before, [](const MergeCall& call) { return call.parts.empty(); });
    for (const MergeCall& call : added.before) merged_.push_back(call.box);
    waiting_.clear();
    added.slot = 0;
  }
  waiting_.push_back({added.slot, box});
  slots_ = std::max(slots_, added.slot + 1);
  return added;
}

}  // namespace longca
