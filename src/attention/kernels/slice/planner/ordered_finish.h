#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/work_items.h"

namespace longca::slice {

/// When CTAs end that add in the order of the work. An item comes to a query tile no earlier than
/// an addition's time after the items of its KV head that were taken before it, and adds its dK and
/// dV after those with the same keys. It counts as waiting where it begins, and as walking at an
/// even rate from there.
class OrderedFinish {
 public:
  /// Items of a static mask's lists, in the order of the work: as many as make `max_items` of all
  /// KV heads together.
  OrderedFinish(const TransposedLists& lists, std::span<const CostedItem> items,
                const BackwardWork& work, std::int64_t max_items);

  /// Cycles, with `heads` KV heads in work at a time. The first call for a number of them takes
  /// O(items × regions that they visit).
  std::int64_t cycles(int heads);

  /// Of the scheduled items of a KV head.
  std::int64_t visits() const { return visits_; }
  /// Cycles if no item waited and all CTAs ended together.
  std::int64_t even_cycles() const { return even_cycles_; }

 private:
  /// A visit to a region of query tiles.
  struct Step {
    std::size_t region = 0;
    /// From the item's first visit to that of the region's first query tile, which comes last, in
    /// one head block; of a region of which it visits a part, as if it went on.
    std::int64_t cycles = 0;
  };
  struct Walk {
    std::size_t tile = 0;
    bool is_part = false;  ///< whether other items have the same keys
    std::size_t steps_begin = 0, steps_end = 0;
    std::int64_t cycles = 0;      ///< of the item
    std::int64_t last_visit = 0;  ///< until then, in one head block
    std::int64_t last_block = 0;  ///< until its last head block
  };
  /// Of the items of a KV head that have been taken.
  struct Progress {
    /// When the last one visits a region, in the first and, if there are several, in the last head
    /// block: what others wait for grows evenly from one to the other.
    std::vector<std::int64_t> first, last;
    std::vector<std::int64_t> keys;  ///< when the last one ended with a key tile
  };

  Walk walk_of(const TransposedLists& lists, const CostedItem& item);
  std::int64_t schedule(int heads) const;
  /// Cycles of an item that begins at `begin`, with its waits.
  std::int64_t take(const Walk& walk, std::int64_t begin, Progress& progress) const;

  const BackwardWork& work_;
  std::int64_t blocks_;
  std::int32_t region_tiles_;
  std::size_t regions_;
  std::vector<Step> steps_;
  std::vector<Walk> walks_;
  std::map<int, std::int64_t> known_;  ///< cycles by heads
  std::int64_t visits_ = 0;
  std::int64_t even_cycles_ = 0;
};

}  // namespace longca::slice
