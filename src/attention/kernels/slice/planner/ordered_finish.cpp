#include "attention/kernels/slice/planner/ordered_finish.h"

#include <algorithm>
#include <limits>

#include "cost/schedule.h"

namespace longca::slice {
namespace {

/// Into which the query tiles are divided at most: planning takes time for each that an item
/// visits.
constexpr std::int64_t kMaxRegions = 256;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min() / 2;

}  // namespace

OrderedFinish::OrderedFinish(const TransposedLists& lists, std::span<const CostedItem> items,
                             const BackwardWork& work, std::int64_t max_items)
    : work_(work), blocks_(head_blocks_of(work, lists)) {
  const std::int64_t q_tiles = lists.query_tiles();
  region_tiles_ = static_cast<std::int32_t>(q_tiles / kMaxRegions + 1);
  regions_ = static_cast<std::size_t>(q_tiles / region_tiles_ + 1);
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, max_items / work.heads_k));
  const auto scheduled = items.first(std::min(items.size(), count));
  for (const CostedItem& item : scheduled) {
    walks_.push_back(walk_of(lists, item));
    visits_ += item.visits;
  }
  even_cycles_ = slice::even_cycles(scheduled, work);
}

OrderedFinish::Walk OrderedFinish::walk_of(const TransposedLists& lists, const CostedItem& item) {
  const std::int64_t visit = work_.platform.slice.backward.query_tile_cycles;
  const auto id = static_cast<std::size_t>(item.item.tile);
  Walk walk = {id, item.item.split >= 0, steps_.size(), 0, item.cycles, 0, 0};
  std::int64_t done = 0;
  for (const QuerySegment& segment : lists.segments_of(lists.tiles[id])) {
    const std::int32_t begin = std::max(segment.q_tile, item.item.q_begin);
    std::int32_t end = std::min(segment.q_tile + segment.count, item.item.q_end);
    while (end > begin) {
      const std::int32_t region = (end - 1) / region_tiles_;
      const std::int32_t first = region * region_tiles_;
      const auto index = static_cast<std::size_t>(region);
      if (steps_.size() == walk.steps_begin || steps_.back().region != index) steps_.push_back({});
      steps_.back() = {index, done + (end - 1 - first) * visit};
      const std::int32_t lowest = std::max(begin, first);
      done += (end - lowest) * visit;
      end = lowest;
    }
  }
  walk.steps_end = steps_.size();
  walk.last_visit = done - visit;
  walk.last_block = (blocks_ - 1) * done;
  return walk;
}

std::int64_t OrderedFinish::take(const Walk& walk, std::int64_t begin, Progress& progress) const {
  const cost::SliceBackwardCycles& rates = work_.platform.slice.backward;
  // An addition has reached device memory, and the next CTA knows it, after about a visit.
  const std::int64_t addition = rates.query_tile_cycles;
  const auto steps = std::span(steps_).subspan(walk.steps_begin, walk.steps_end - walk.steps_begin);
  std::int64_t start = begin;
  for (const Step& step : steps) {
    start = std::max(start, progress.first[step.region] + addition - step.cycles);
  }
  if (blocks_ > 1) {
    for (const Step& step : steps) {
      start =
          std::max(start, progress.last[step.region] + addition - step.cycles - walk.last_block);
    }
  }
  for (const Step& step : steps) {
    const std::int64_t visit = start + std::min(step.cycles, walk.last_visit);
    progress.first[step.region] = visit;
    if (blocks_ > 1) progress.last[step.region] = visit + walk.last_block;
  }
  std::int64_t end = start + walk.cycles;
  if (walk.is_part) {
    std::int64_t& keys = progress.keys[walk.tile];
    keys = end = std::max(end, keys) + rates.add_keys_cycles;
  }
  return end - begin;
}

std::int64_t OrderedFinish::cycles(int heads) {
  const auto [known, is_new] = known_.try_emplace(heads, 0);
  if (is_new) known->second = schedule(heads);
  return known->second;
}

std::int64_t OrderedFinish::schedule(int heads) const {
  std::size_t tiles = 0;
  for (const Walk& walk : walks_) tiles = std::max(tiles, walk.tile + 1);
  const std::vector<std::int64_t> never(regions_, kNever);
  std::vector<Progress> progress(static_cast<std::size_t>(work_.heads_k),
                                 {never, never, std::vector<std::int64_t>(tiles, kNever)});
  cost::ListSchedule<std::int64_t> schedule(work_.ctas);
  for (int section = 0; section < work_.heads_k; section += heads) {
    for (const Walk& walk : walks_) {
      for (int head = section; head < section + heads; ++head) {
        schedule.add(take(walk, schedule.next(), progress[static_cast<std::size_t>(head)]));
      }
    }
  }
  return schedule.end();
}

}  // namespace longca::slice
