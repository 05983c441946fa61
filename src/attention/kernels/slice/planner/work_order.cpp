#include "attention/kernels/slice/planner/work_order.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "attention/kernels/slice/planner/ordered_finish.h"
#include "cost/schedule.h"

namespace longca::slice {
namespace {

/// Items per CTA up to which the tail matters; with more, nothing is simulated.
constexpr std::int64_t kManyItems = 64;
/// Items per CTA to which a list may be cut, or twice as many as it had: with more, planning takes
/// longer than they gain.
constexpr std::int64_t kMaxCutItems = 12;
/// The portions, in 16ths, of the time left that an item may take; each is tried.
constexpr int kPortions[] = {16, 8, 4};

/// Puts items that begin with the same query tile (the last of a document, of a chunk) next to each
/// other, so that what they read stays in L2. The group with the costliest item comes first.
///
/// Of equal ones the last comes first or, if items wait for each other, last: under a window a CTA
/// that begins below its neighbour's rows would wait until that one has come down to its own.
void group_items(bool waits, std::vector<CostedItem>& items) {
  std::ranges::stable_sort(items, {}, &CostedItem::last);
  struct Group {
    std::size_t begin, end;
    std::int64_t max_cycles;
  };
  std::vector<Group> groups;
  for (std::size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    std::int64_t max_cycles = 0;
    for (end = begin; end < items.size() && items[end].last == items[begin].last; ++end) {
      max_cycles = std::max(max_cycles, items[end].cycles);
    }
    groups.push_back({begin, end, max_cycles});
  }
  if (!waits) std::reverse(groups.begin(), groups.end());
  std::ranges::stable_sort(groups, std::greater<>{}, &Group::max_cycles);
  std::vector<CostedItem> sorted;
  sorted.reserve(items.size());
  for (const Group& group : groups) {
    sorted.insert(sorted.end(), items.begin() + static_cast<std::ptrdiff_t>(group.begin),
                  items.begin() + static_cast<std::ptrdiff_t>(group.end));
  }
  items.swap(sorted);
}

/// The fewest KV heads at a time, whose rows stay in L2, with which the CTAs end nearly as early as
/// with the best number: at most 1 / `slack_divisor` later. `finish` gives the cycles for a number
/// of KV heads at a time; `even_finish` are those in which all CTAs would end together.
template <typename Finish>
std::int32_t choose_section_heads(const BackwardWork& work, std::int64_t slack_divisor,
                                  std::int64_t even_finish, const Finish& finish) {
  const auto with_slack = [&](std::int64_t cycles) { return cycles + cycles / slack_divisor; };
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> heads;
  // The first that ends near enough to `min`; beyond the last if none does.
  const auto choice = [&](std::int64_t min) {
    return std::ranges::find_if(times, [&](std::int64_t time) { return time <= with_slack(min); }) -
           times.begin();
  };
  for (int i = 1; i <= work.heads_k; ++i) {
    const bool power = (i & (i - 1)) == 0 || i == work.heads_k;
    if (work.heads_k % i != 0 || !power) continue;
    heads.push_back(i);
    times.push_back(finish(i));
    // The best number ends between even_finish and the best of these: if that changes nothing, more
    // need not be tried.
    if (choice(even_finish) == choice(*std::ranges::min_element(times))) break;
  }
  return heads[static_cast<std::size_t>(choice(*std::ranges::min_element(times)))];
}

/// How many key tiles have several of the items.
std::int64_t count_split_tiles(std::span<const CostedItem> items, const TransposedLists& lists) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(lists.tiles_per_list));
  std::int64_t split = 0;
  for (const CostedItem& item : items) {
    split += ++counts[static_cast<std::size_t>(item.item.tile)] == 2;
  }
  return split;
}

/// How many key tiles may be split: accumulators of a quarter of dQ's or, if more, 64 MB at 128
/// dimensions, all of 8K keys of 8 heads, as the last rows of a document on their own see many
/// keys.
std::int64_t max_split_tiles(const BackwardWork& work, const TransposedLists& lists) {
  const std::int64_t rows = lists.query_tiles() * lists.tile_tokens() * work.heads_q;
  constexpr std::int64_t kRows = std::int64_t{64} << 20 >> 9;  // 64 MB of 512 bytes each
  return std::max(rows / 4, kRows) / (std::int64_t{2} * kTileKeys * work.heads_k);
}

/// Whether few rows see many keys, as where a rank has the end of a document on its own.
bool has_few_rows(const TransposedLists& lists) {
  std::int64_t keys = 0;
  for (const KeyTile& tile : lists.tiles) keys += tile.k_end - tile.k_begin;
  return 3 * lists.query_tiles() * lists.tile_tokens() <= 2 * keys;
}

/// For each item, the cycles per CTA that are left when it is begun in the last section.
std::vector<std::int64_t> cycles_left(std::span<const CostedItem> items, const BackwardWork& work,
                                      int heads) {
  std::vector<std::int64_t> left(items.size());
  std::int64_t sum = 0;
  for (std::size_t i = items.size(); i-- > 0;) {
    sum += items[i].cycles * heads;
    left[i] = sum / work.ctas;
  }
  return left;
}

/// Into how many parts to cut an item so that each takes at most `max_cycles`.
std::int64_t parts_of(const CostedItem& item, std::int64_t max_cycles, const BackwardWork& work,
                      std::int64_t head_blocks) {
  const cost::SliceBackwardCycles& rates = work.platform.slice.backward;
  if (item.cycles <= max_cycles) return 1;
  const std::int64_t visit = split_item_cycles(rates, 2) - split_item_cycles(rates, 1);
  const std::int64_t min_visits =
      (rates.min_part_visits + head_blocks - 1) / head_blocks * head_blocks;
  const std::int64_t visits =
      std::max(min_visits, (max_cycles - split_item_cycles(rates, 1)) / visit + 1);
  return std::clamp<std::int64_t>((item.visits + visits - 1) / visits, 1,
                                  std::max<std::int64_t>(1, item.visits / min_visits));
}

/// The items, those cut that would take longer than `portion` / 16 of the time left.
std::vector<CostedItem> cut_to(int portion, const BackwardWork& work, const TransposedLists& lists,
                               std::span<const CostedItem> items,
                               std::span<const std::int64_t> left) {
  const std::int64_t blocks = head_blocks_of(work, lists);
  std::vector<CostedItem> cut;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t parts = parts_of(items[i], left[i] * portion / 16, work, blocks);
    if (parts == 1) {
      cut.push_back(items[i]);
    } else {
      split_item(work, lists, items[i], parts, cut);
    }
  }
  return cut;
}

/// The most KV heads in work at a time by which a tail may be shortened: those of which the rows
/// that the longest item sees stay in L2. All where items see the same rows, and go through them in
/// step, or few rows see many keys.
std::int32_t most_heads(const BackwardWork& work, const TransposedLists& lists,
                        std::span<const CostedItem> items) {
  const auto [shortest, longest] = std::ranges::minmax(items, {}, &CostedItem::visits);
  const auto [first, last] = std::ranges::minmax(items, {}, &CostedItem::last);
  const bool see_the_same = shortest.visits == longest.visits && first.last == last.last;
  if (see_the_same || has_few_rows(lists)) return work.heads_k;
  std::int32_t heads = work.heads_k;
  while (heads > lists.section_heads &&
         (work.heads_k % heads != 0 ||
          !stays_in_cache(work, heads * longest.visits * kRowTileBytes))) {
    --heads;
  }
  return heads;
}

/// Tries cuts and keeps the one that ends first.
class CutSearch {
 public:
  CutSearch(const BackwardWork& work, const TransposedLists& lists,
            std::span<const CostedItem> items)
      : work_(work),
        lists_(lists),
        items_(items),
        max_split_(max_split_tiles(work, lists)),
        split_before_(count_split_tiles(items, lists)),
        even_finish_(even_cycles(items, work)),
        gain_divisor_(has_few_rows(lists) ? rates().few_rows_cut_gain_divisor
                                          : rates().cut_gain_divisor),
        max_finish_(finish_time(items, work, lists.section_heads)) {
    demand_gain();
    // CTAs that go through the rows once for each head block fall out of step by cuts.
    if (head_blocks_of(work, lists) > 1) demand_gain();
  }

  /// Whether at most 1 % is left to gain.
  bool done() const { return max_finish_ - max_finish_ / 100 <= even_finish_; }

  void try_cuts(std::int32_t heads) {
    const std::vector<std::int64_t> left = cycles_left(items_, work_, heads);
    for (const int portion : kPortions) {
      if (!done()) try_cut(heads, cut_to(portion, work_, lists_, items_, left));
    }
  }
  /// Demands a greater gain from here on: cuts cost more than the model knows, and SMs that are
  /// idle at the end have dQ to write. With few rows there is little to write.
  void demand_gain() { max_finish_ -= max_finish_ / gain_divisor_; }

  std::vector<CostedItem> best;  ///< empty: no cut is good enough
  std::int32_t best_heads = 0;

 private:
  const cost::SliceBackwardCycles& rates() const { return work_.platform.slice.backward; }

  void try_cut(std::int32_t heads, std::vector<CostedItem> cut) {
    const std::int64_t split = count_split_tiles(cut, lists_);
    if (split > max_split_ ||
        std::ssize(cut) * work_.heads_k >
            std::max(kMaxCutItems * work_.ctas, 2 * std::ssize(items_) * work_.heads_k)) {
      return;
    }
    const std::int64_t finish = finish_time(cut, work_, heads) +
                                (split - split_before_) * work_.heads_k * rates().split_tile_cycles;
    if (finish > max_finish_) return;
    max_finish_ = finish;
    best = std::move(cut);
    best_heads = heads;
  }

  const BackwardWork& work_;
  const TransposedLists& lists_;
  std::span<const CostedItem> items_;
  std::int64_t max_split_;
  std::int64_t split_before_;
  std::int64_t even_finish_;   ///< if all CTAs ended together
  std::int64_t gain_divisor_;  ///< 1 / this of the time is to be gained
  std::int64_t max_finish_;    ///< at which a cut must end at the latest
};

}  // namespace

bool has_many_items(const BackwardWork& work, std::int64_t items) {
  return items * work.heads_k > kManyItems * work.ctas;
}

std::int64_t finish_time(std::span<const CostedItem> items, const BackwardWork& work, int heads) {
  cost::ListSchedule<std::int64_t> schedule(work.ctas);
  for (int section = 0; section < work.heads_k; section += heads) {
    for (const CostedItem& item : items) {
      for (int head = 0; head < heads; ++head) schedule.add(item.cycles);
    }
  }
  return schedule.end();
}

void cut_last_items(const BackwardWork& work, TransposedLists& lists,
                    std::vector<CostedItem>& items) {
  if (items.empty()) return;
  CutSearch search(work, lists, items);
  if (search.done()) return;
  search.try_cuts(lists.section_heads);
  if (const std::int32_t heads = most_heads(work, lists, items); heads != lists.section_heads) {
    // That the rows of fewer heads stay in L2 is worth a gain too.
    search.demand_gain();
    search.try_cuts(heads);
  }
  if (search.best.empty()) return;
  lists.section_heads = search.best_heads;
  items.swap(search.best);
}

namespace {

/// Fills in end_cycles and chunk_items. With many items, CTAs count as ending together.
void estimate_end(const BackwardWork& work, std::span<const std::vector<CostedItem>> orders,
                  bool many, TransposedLists& lists) {
  std::int64_t cycles = 0;
  std::int64_t in_chunks = 0;
  for (const std::vector<CostedItem>& items : orders) {
    for (const CostedItem& item : items) {
      const bool is_cut = item.cycles != item_cycles(work.platform.slice.backward, item.visits);
      cycles += item.cycles;
      in_chunks += item.item.split >= 0 && !is_cut ? 1 : 0;
    }
  }
  const double per_cta =
      static_cast<double>(work.heads_k) / static_cast<double>(orders.size()) / work.ctas;
  lists.chunk_items = static_cast<double>(in_chunks) * per_cta;
  lists.end_cycles =
      many ? static_cast<double>(cycles) * per_cta
           : static_cast<double>(finish_time(orders.front(), work, lists.section_heads));
}

/// Fills in section_heads of items that do not wait for each other; of many, 1.
void choose_sections(const BackwardWork& work, std::span<const CostedItem> items,
                     TransposedLists& lists) {
  if (has_many_items(work, std::ssize(items))) return;
  lists.section_heads = choose_section_heads(
      work, work.platform.slice.backward.section_slack_divisor, even_cycles(items, work),
      [&](int heads) { return finish_time(items, work, heads); });
}

/// Chooses the items and how many KV heads are in work at a time where items wait for each other.
/// More heads wait less, but their rows have to stay in L2: so chunks are made smaller for them.
class OrderedWork {
 public:
  /// `items` are those of work's chunks, grouped.
  OrderedWork(const BackwardWork& work, TransposedLists& lists, std::vector<CostedItem>& items)
      : work_(work), lists_(lists), items_(items) {}

  void choose() {
    index_split_keys(items_, lists_);
    OrderedFinish finish(lists_, items_, work_, kManyItems * work_.ctas);
    lists_.section_heads = choose_section_heads(work_, kSlackDivisor, finish.even_cycles(),
                                                [&](int heads) { return finish.cycles(heads); });
    prefer_heads_that_stay(finish);
    // Of a quarter of the visits, items would be too short: full 8K with 8 heads is 2 % slower on
    // an H200 and 4 % on an H100.
    const std::int64_t half = work_.chunk_visits / 2;
    const std::int64_t heads = lists_.section_heads;
    if (!stays(heads, work_.chunk_visits) && stays(heads, half)) try_chunks_of(half, finish);
  }

 private:
  /// 2 % of waiting are more than what L2 gains by fewer heads, whose rows stay there as well.
  static constexpr std::int64_t kSlackDivisor = 50;
  /// Heads whose rows stay in L2 may wait 8 % longer. Documents at 32K, where 4 heads wait 2 to 7 %
  /// longer than 8, end with 4 from 1 % later to 7 % earlier on an H200, 4 to 22 % earlier on an
  /// H100.
  static constexpr std::int64_t kCacheDivisor = 12;

  /// Whether the rows of a chunk of each of these heads stay in L2.
  bool stays(std::int64_t heads, std::int64_t visits) const {
    const std::int64_t chunk = work_.platform.slice.backward.chunk_visits * kRowTileBytes;
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
    if (finish.cycles(fewer) <= cycles + cycles / kCacheDivisor) lists_.section_heads = fewer;
  }

  /// Cycles per visit of the items that are scheduled.
  double pace(OrderedFinish& finish) const {
    return static_cast<double>(finish.cycles(lists_.section_heads)) /
           static_cast<double>(finish.visits());
  }

  /// Takes these chunks unless CTAs end more than 1 % later.
  void try_chunks_of(std::int64_t visits, OrderedFinish& before) {
    BackwardWork smaller = work_;
    smaller.chunk_visits = visits;
    std::vector<CostedItem> items = make_items(smaller, lists_).front();
    group_items(true, items);
    std::vector<KeyRange> split_keys = std::exchange(lists_.split_keys, {});
    index_split_keys(items, lists_);
    OrderedFinish after(lists_, items, smaller, kManyItems * work_.ctas);
    if (pace(after) <= 1.01 * pace(before)) {
      items_.swap(items);
    } else {
      lists_.split_keys.swap(split_keys);
    }
  }

  const BackwardWork& work_;
  TransposedLists& lists_;
  std::vector<CostedItem>& items_;
};

}  // namespace

void order_work(const BackwardWork& work, TransposedLists& lists) {
  // In a fixed order items wait for each other; those of block lists come to rows in no pattern, so
  // that nothing can be planned for it.
  const bool waits = work.ordered && !lists.of_blocks;
  std::vector<std::vector<CostedItem>> orders = make_items(work, lists);
  for (std::vector<CostedItem>& items : orders) group_items(waits, items);
  std::vector<CostedItem>& first = orders.front();
  if (waits) {
    OrderedWork(work, lists, first).choose();
  } else {
    choose_sections(work, first, lists);
  }
  const bool many = has_many_items(work, std::ssize(first));
  // Only free items are cut, which splits more key tiles.
  if (!work.ordered && !lists.of_blocks) {
    if (!many) cut_last_items(work, lists, first);
    index_split_keys(first, lists);
  }
  estimate_end(work, orders, many, lists);
  lists.items_per_order = static_cast<std::int64_t>(orders.front().size());
  lists.order.reserve(orders.size() * orders.front().size());
  for (const std::vector<CostedItem>& items : orders) {
    for (const CostedItem& item : items) lists.order.push_back(item.item);
  }
}

}  // namespace longca::slice
