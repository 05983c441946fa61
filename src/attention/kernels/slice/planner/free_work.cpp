#include "attention/kernels/slice/planner/free_work.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/kernels/slice/planner/section_heads.h"
#include "core/rounding.h"

namespace longca::slice {
namespace {

/// Items per CTA to which a list may be cut, or kMaxCutFactor times as many as it had: with more,
/// planning takes longer than they gain.
constexpr std::int64_t kMaxCutItems = 12;
constexpr std::int64_t kMaxCutFactor = 2;
/// The portions, in 16ths, of the time left that an item may take: all of it, a half and a quarter.
/// Each that is tried takes the time of a simulation.
constexpr int kPortions[] = {16, 8, 4};

/// Memory that float32 sums of split key tiles may take: this part of dQ's or, if more, so many
/// bytes at 128 dimensions, those of 8K keys of 8 heads, as the last rows of a document on their
/// own see many keys.
constexpr std::int64_t kMaxSumsDivisor = 4;
constexpr std::int64_t kMaxSumsBytes = std::int64_t{64} << 20;
constexpr std::int64_t kSumRowBytes = 128 * sizeof(float);

/// How many of the items each key tile has.
std::vector<std::int64_t> count_items(std::span<const CostedItem> items,
                                      const TransposedLists& lists) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(lists.tiles_per_list));
  for (const CostedItem& item : items) ++counts[static_cast<std::size_t>(item.item.tile)];
  return counts;
}

/// How many key tiles have several of the items.
std::int64_t count_split_tiles(std::span<const CostedItem> items, const TransposedLists& lists) {
  return std::ranges::count_if(count_items(items, lists), [](std::int64_t n) { return n > 1; });
}

/// How many of the items are one of several of their key tile.
std::int64_t count_parts(std::span<const CostedItem> items, const TransposedLists& lists) {
  std::int64_t parts = 0;
  for (const std::int64_t n : count_items(items, lists)) parts += n > 1 ? n : 0;
  return parts;
}

/// Of the items, each weighted by its visits.
std::int64_t mean_visits(std::span<const CostedItem> items) {
  std::int64_t visits = 0;
  std::int64_t squares = 0;
  for (const CostedItem& item : items) {
    visits += item.visits;
    squares += item.visits * item.visits;
  }
  return visits == 0 ? 0 : squares / visits;
}

/// Whether the rows that items see, on average, stay in L2 with so many KV heads in work at a time.
bool rows_stay(const BackwardWork& work, std::span<const CostedItem> items, int heads) {
  return heads == 1 || stays_in_cache(work, heads * mean_visits(items) * kRowTileBytes);
}

/// How many key tiles may be split.
std::int64_t max_split_tiles(const BackwardWork& work, const TransposedLists& lists) {
  const std::int64_t rows = lists.query_tiles() * lists.tile_tokens() * work.heads_q;
  return std::max(rows / kMaxSumsDivisor, kMaxSumsBytes / kSumRowBytes) /
         (std::int64_t{2} * kTileKeys * work.heads_k);
}

/// Whether few rows see many keys, as where a rank has the end of a document on its own.
bool has_few_rows(const BackwardWork& work, const TransposedLists& lists) {
  std::int64_t keys = 0;
  for (const KeyTile& tile : lists.tiles) keys += tile.k_end - tile.k_begin;
  const std::int64_t rows = lists.query_tiles() * lists.tile_tokens();
  return static_cast<double>(keys) >=
         work.platform.slice.backward.few_rows_min_keys * static_cast<double>(rows);
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
  const std::int64_t min_visits = round_up(rates.min_part_visits, head_blocks);
  const std::int64_t visits =
      std::max(min_visits, (max_cycles - split_item_cycles(rates, 1)) / visit + 1);
  return std::clamp<std::int64_t>(ceil_div(item.visits, visits), 1,
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
  if (see_the_same || has_few_rows(work, lists)) return work.heads_k;
  std::int32_t heads = work.heads_k;
  while (heads > lists.section_heads &&
         (work.heads_k % heads != 0 ||
          !stays_in_cache(work, heads * longest.visits * kRowTileBytes))) {
    --heads;
  }
  return heads;
}

/// Tries cuts and keeps the one that ends first, if that is sufficiently earlier than
/// `uncut_cycles`.
class CutSearch {
 public:
  CutSearch(const BackwardWork& work, const TransposedLists& lists,
            std::span<const CostedItem> items, std::int64_t uncut_cycles)
      : work_(work),
        lists_(lists),
        items_(items),
        max_split_(max_split_tiles(work, lists)),
        split_before_(count_split_tiles(items, lists)),
        even_finish_(even_cycles(items, work)),
        gain_divisor_(has_few_rows(work, lists) ? rates().few_rows_cut_gain_divisor
                                                : rates().cut_gain_divisor),
        max_finish_(uncut_cycles) {
    demand_gain();
    // CTAs that go through the rows once for each head block fall out of step by cuts.
    if (head_blocks_of(work, lists) > 1) demand_gain();
  }

  /// Whether nothing is left to gain.
  bool done() const { return max_finish_ - max_finish_ / kEqualDivisor <= even_finish_; }

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
    const std::int64_t max_items =
        std::max(kMaxCutItems * work_.ctas, kMaxCutFactor * std::ssize(items_) * work_.heads_k);
    if (split > max_split_ || std::ssize(cut) * work_.heads_k > max_items) return;
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

/// Chooses the items of a static mask, and how many KV heads are in work at a time, where items do
/// not wait for each other: chunks of the size given or of parts of it, or cuts, by which the CTAs
/// end first.
class FreeWork {
 public:
  /// `items` are those of work's chunks, grouped.
  FreeWork(const BackwardWork& work, TransposedLists& lists, std::vector<CostedItem>& items)
      : work_(work), lists_(lists), items_(items) {}

  void choose() {
    Choice best = choice_of(items_);
    const std::int32_t whole_heads = best.heads;
    for (int parts = 2; parts <= kMaxParts && best.even < least(best); parts *= 2) {
      BackwardWork smaller = work_;
      smaller.chunk_visits = work_.chunk_visits / parts;
      std::vector<CostedItem> items = make_items(smaller, lists_).front();
      if (items.size() == best.items.size()) continue;
      group_items(items);
      Choice next = choice_of(std::move(items));
      if (next.cycles < least(best)) best = std::move(next);
    }
    lists_.section_heads = whole_heads;
    if (cut(std::min(best.cycles, finish_time(items_, work_, whole_heads)))) return;
    lists_.section_heads = best.heads;
    items_ = std::move(best.items);
  }

 private:
  /// Into how many parts chunks are cut at most: each number takes the time of a simulation, of
  /// twice as many items as the one before.
  static constexpr int kMaxParts = 4;

  struct Choice {
    std::vector<CostedItem> items;
    std::int32_t heads = 1;   ///< KV heads in work at a time
    std::int64_t cycles = 0;  ///< until the last CTA ends
    std::int64_t even = 0;    ///< if all CTAs ended together
  };
  /// The cycles below which smaller chunks gain enough on a choice.
  std::int64_t least(const Choice& choice) const {
    return choice.cycles - choice.cycles / work_.platform.slice.backward.chunk_gain_divisor;
  }
  Choice choice_of(std::vector<CostedItem> items) {
    const std::int64_t adding = count_parts(items, lists_) * work_.heads_k *
                                work_.platform.slice.backward.add_keys_cycles / work_.ctas;
    const std::int64_t cycles = choose_sections(work_, items, lists_) + adding;
    const std::int64_t even = even_cycles(items, work_) + adding;
    return {std::move(items), lists_.section_heads, cycles, even};
  }

  /// Shortens the tail: cuts items along queries so that none takes longer than a portion of the
  /// time that is left when it is begun, if the CTAs end sufficiently earlier by it than after
  /// `uncut_cycles`. More KV heads at a time may be in work then. Whether it did.
  bool cut(std::int64_t uncut_cycles) {
    if (items_.empty()) return false;
    CutSearch search(work_, lists_, items_, uncut_cycles);
    if (search.done()) return false;
    if (!rows_stay(work_, items_, lists_.section_heads)) search.demand_gain();
    search.try_cuts(lists_.section_heads);
    if (const std::int32_t heads = most_heads(work_, lists_, items_);
        heads != lists_.section_heads) {
      // That the rows of fewer heads stay in L2 is worth a gain too.
      search.demand_gain();
      search.try_cuts(heads);
    }
    if (search.best.empty()) return false;
    lists_.section_heads = search.best_heads;
    items_.swap(search.best);
    return true;
  }

  const BackwardWork& work_;
  TransposedLists& lists_;
  std::vector<CostedItem>& items_;
};

}  // namespace

std::int64_t choose_sections(const BackwardWork& work, std::span<const CostedItem> items,
                             TransposedLists& lists) {
  const cost::SliceBackwardCycles& rates = work.platform.slice.backward;
  const auto finish = [&](int heads) {
    const std::int64_t cycles = finish_time(items, work, heads);
    return rows_stay(work, items, heads) ? cycles : cycles + cycles / rates.cut_gain_divisor;
  };
  const auto [heads, cycles] =
      choose_section_heads(work, rates.section_slack_divisor, even_cycles(items, work), finish);
  lists.section_heads = heads;
  return cycles;
}

void choose_free_work(const BackwardWork& work, TransposedLists& lists,
                      std::vector<CostedItem>& items) {
  FreeWork(work, lists, items).choose();
}

}  // namespace longca::slice
