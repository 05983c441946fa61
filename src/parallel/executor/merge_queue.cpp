#include "parallel/executor/merge_queue.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace longca {
namespace {

bool overlap(Range a, Range b) {
  return std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

bool contains(Range whole, Range part) {
  return whole.begin <= part.begin && part.end <= whole.end;
}

}  // namespace

std::vector<MergeCall> MergeQueue::pieces(Range rows) const {
  std::vector<std::int64_t> cuts = {rows.begin, rows.end};
  const auto cut = [&](Range range) {
    for (const std::int64_t at : {range.begin, range.end}) {
      if (rows.begin < at && at < rows.end) cuts.push_back(at);
    }
  };
  for (const WaitingPart& part : waiting_) cut(part.rows);
  for (const Range range : merged_) cut(range);
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());

  std::vector<MergeCall> calls;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    MergeCall call{{cuts[i], cuts[i + 1]}, {}, false};
    std::ranges::copy_if(waiting_, std::back_inserter(call.parts),
                         [&](const WaitingPart& part) { return contains(part.rows, call.rows); });
    call.accumulator =
        std::ranges::any_of(merged_, [&](Range range) { return contains(range, call.rows); });
    calls.push_back(std::move(call));
  }
  return calls;
}

MergeQueue::Added MergeQueue::add(Range rows) {
  const auto taken = [&](int slot) {
    return std::ranges::any_of(waiting_, [&](const WaitingPart& part) {
      return part.slot == slot && overlap(part.rows, rows);
    });
  };
  Added added;
  while (added.slot < most_slots_ && taken(added.slot)) ++added.slot;
  if (added.slot == most_slots_) {
    Range all = rows;
    for (const WaitingPart& part : waiting_) {
      all = {std::min(all.begin, part.rows.begin), std::max(all.end, part.rows.end)};
    }
    added.before = pieces(all);
    std::erase_if(added.before, [](const MergeCall& call) { return call.parts.empty(); });
    for (const MergeCall& call : added.before) merged_.push_back(call.rows);
    waiting_.clear();
    added.slot = 0;
  }
  waiting_.push_back({added.slot, rows});
  slots_ = std::max(slots_, added.slot + 1);
  return added;
}

std::vector<MergeCall> MergeQueue::finish(Range rows) const {
  return pieces(rows);
}

}  // namespace longca
