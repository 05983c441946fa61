#include "attention/kernels/slice/planner/ordered_work.h"

#include <utility>

#include "attention/kernels/slice/planner/ordered_finish.h"
#include "attention/kernels/slice/planner/section_heads.h"

namespace longca::slice {
namespace {

class OrderedWork {
 public:
  OrderedWork(const BackwardWork& work, std::int64_t max_items, TransposedLists& lists,
              std::vector<CostedItem>& items)
      : work_(work),
        rates_(work.platform.slice.backward),
        max_items_(max_items),
        lists_(lists),
        items_(items) {}

  void choose() {
    index_split_keys(items_, lists_);
    OrderedFinish finish(lists_, items_, work_, max_items_);
    lists_.section_heads =
        choose_section_heads(work_, rates_.ordered_slack_divisor, finish.even_cycles(),
                             [&](int heads) { return finish.cycles(heads); })
            .heads;
    prefer_heads_that_stay(finish);
    // Of a quarter of the visits, items would be too short: full 8K with 8 heads is 2 % slower on
    // an H200 and 4 % on an H100.
    const std::int64_t half = work_.chunk_visits / 2;
    const std::int64_t heads = lists_.section_heads;
    if (!stays(heads, work_.chunk_visits) && stays(heads, half)) try_chunks_of(half, finish);
  }

 private:
  /// Whether the rows of a chunk of each of these heads stay in L2.
  bool stays(std::int64_t heads, std::int64_t visits) const {
    const std::int64_t chunk = rates_.chunk_visits * kRowTileBytes;
    return stays_in_cache(work_, heads * visits * chunk / work_.chunk_visits);
  }

  /// Where the rows of the chosen heads leave L2, even with chunks of half the visits: the most
  /// heads whose rows would stay, unless CTAs end much later by it.
  void prefer_heads_that_stay(OrderedFinish& finish) {
    int fewer = lists_.section_heads;
    while (fewer > 1 && (work_.heads_k % fewer != 0 || !stays(fewer, work_.chunk_visits / 2))) {
      --fewer;
    }
    if (fewer == lists_.section_heads) return;
    const std::int64_t cycles = finish.cycles(lists_.section_heads);
    if (finish.cycles(fewer) <= cycles + cycles / rates_.ordered_cache_divisor) {
      lists_.section_heads = fewer;
    }
  }

  /// Cycles per visit of the items that are scheduled.
  double pace(OrderedFinish& finish) const {
    return static_cast<double>(finish.cycles(lists_.section_heads)) /
           static_cast<double>(finish.visits());
  }

  /// Takes these chunks unless CTAs end later by it.
  void try_chunks_of(std::int64_t visits, OrderedFinish& before) {
    BackwardWork smaller = work_;
    smaller.chunk_visits = visits;
    std::vector<CostedItem> items = make_items(smaller, lists_).front();
    group_items(items);
    std::vector<KeyRange> split_keys = std::exchange(lists_.split_keys, {});
    index_split_keys(items, lists_);
    OrderedFinish after(lists_, items, smaller, max_items_);
    if (pace(after) <= (1 + 1.0 / kEqualDivisor) * pace(before)) {
      items_.swap(items);
    } else {
      lists_.split_keys.swap(split_keys);
    }
  }

  const BackwardWork& work_;
  const cost::SliceBackwardCycles& rates_;
  std::int64_t max_items_;
  TransposedLists& lists_;
  std::vector<CostedItem>& items_;
};

}  // namespace

void choose_ordered_work(const BackwardWork& work, std::int64_t max_items, TransposedLists& lists,
                         std::vector<CostedItem>& items) {
  OrderedWork(work, max_items, lists, items).choose();
}

}  // namespace longca::slice
