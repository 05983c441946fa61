#include "attention/kernels/slice/planner/work_items.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <span>

#include "core/rounding.h"

namespace longca::slice {
namespace {

/// Query heads per KV head from which on tiles are split into chunks: float32 accumulators of dK
/// and dV, of as many keys as queries, then take at most half as much memory as that of dQ.
constexpr int kMinGroup = 4;
/// Items of a list at most: for very long masks chunks are larger instead, as planning takes time
/// per item.
constexpr std::int64_t kMaxItems = 16384;
/// Items into which a CTA's share of all work is split at least: none has more than half of it,
/// unless min_item_visits is more.
constexpr std::int64_t kItemsPerShare = 2;

constexpr std::int64_t kAllVisits = std::numeric_limits<std::int32_t>::max();

/// Takes the query tiles of a key tile one after the other, from the last to the first.
class QueryCursor {
 public:
  QueryCursor(const TransposedLists& lists, const KeyTile& tile)
      : segments_(lists.segments_of(tile)) {}

  struct Part {
    std::int32_t q_begin = 0, q_end = 0;
    std::int64_t visits = 0;
  };

  bool done() const { return next_ == segments_.size(); }
  /// One past the next query tile.
  std::int32_t top() const { return segments_[next_].q_tile + segments_[next_].count - taken_; }

  /// Takes at most `max_visits`, of query tiles from `floor` on.
  Part take(std::int64_t max_visits, std::int32_t floor) {
    Part part;
    if (!done()) part.q_begin = part.q_end = top();
    while (!done() && part.visits < max_visits && top() > floor) {
      const QuerySegment& segment = segments_[next_];
      const std::int64_t rest = top() - std::max(segment.q_tile, floor);
      const auto count = static_cast<std::int32_t>(std::min(rest, max_visits - part.visits));
      part.visits += count;
      part.q_begin = top() - count;
      taken_ += count;
      if (taken_ == segment.count) {
        ++next_;
        taken_ = 0;
      }
    }
    return part;
  }

 private:
  std::span<const QuerySegment> segments_;
  std::size_t next_ = 0;
  std::int32_t taken_ = 0;  ///< from the end of the next segment
};

class ItemMaker {
 public:
  ItemMaker(const BackwardWork& work, TransposedLists& lists)
      : work_(work), cycles_(work.platform.slice.backward), lists_(lists) {
    std::int64_t longest = 0;
    for (const KeyTile& tile : lists.tiles) {
      longest = std::max<std::int64_t>(longest, tile.q_tiles);
      visits_ += tile.q_tiles;
      end_ = std::max(end_, tile.q_end);
    }
    chunk_ = chunk_tiles();
    const bool steady = in_step();
    if (!exceeds_chunks(longest, steady ? cycles_.min_chunks_in_step : cycles_.min_chunks)) {
      chunk_ = kAllVisits;
    } else if (!steady && chunk_ > 1 && exceeds_cache()) {
      chunk_ /= 2;
    }
  }

  std::vector<std::vector<CostedItem>> make() {
    if (lists_.of_blocks) return make_for_block_lists();
    const std::int64_t max_visits =
        work_.ordered ? kAllVisits
                      : std::max(visits_ * work_.heads_k / (kItemsPerShare * work_.ctas),
                                 ceil_div(cycles_.min_item_visits, head_blocks()));
    std::vector<CostedItem> items;
    for (std::size_t i = 0; i < lists_.tiles.size(); ++i) add_tile(i, max_visits, items);
    return {std::move(items)};
  }

 private:
  std::int64_t head_blocks() const { return head_blocks_of(work_, lists_); }

  /// Whether key tiles whose CTAs start at the same query have walks of about the same length, as
  /// without causal masks: then they also end together, and the next ones start together. The mean
  /// is then near the longest, under a causal mask it is half of that: the bound is between these.
  bool in_step() const {
    std::vector<std::int64_t> longest(static_cast<std::size_t>(end_) + 1);
    for (const KeyTile& tile : lists_.tiles) {
      std::int64_t& max = longest[static_cast<std::size_t>(tile.q_end)];
      max = std::max<std::int64_t>(max, tile.q_tiles);
    }
    std::int64_t sum = 0;
    for (const KeyTile& tile : lists_.tiles) sum += longest[static_cast<std::size_t>(tile.q_end)];
    return 4 * visits_ >= 3 * sum;
  }

  /// Whether all key tiles end with the same query, as in masks without documents and windows, and
  /// the rows of the chunks that all CTAs work on do not stay in L2.
  bool exceeds_cache() const {
    for (const KeyTile& tile : lists_.tiles) {
      if (tile.q_tiles > 0 && tile.q_end != end_) return false;
    }
    // As many CTAs share a chunk as key tiles see a query tile.
    return !stays_in_cache(work_,
                           work_.ctas * end_ * chunk_ * head_blocks() * kRowTileBytes / visits_);
  }

  /// Query tiles per chunk; kAllVisits if nothing is to be split into chunks.
  std::int64_t chunk_tiles() const {
    if (!work_.has_chunks || work_.heads_q < kMinGroup * work_.heads_k) return kAllVisits;
    // Of block lists in a fixed order, whose items come to rows in no pattern, chunks wait more.
    if (work_.ordered && lists_.of_blocks) return kAllVisits;
    std::int64_t tiles = std::max<std::int64_t>(1, work_.chunk_visits / head_blocks());
    while (tiles < end_ && lists_.tiles_per_list * ceil_div(end_, tiles) > kMaxItems) {
      tiles *= 2;
    }
    return tiles;
  }
  /// Whether visits are more than those of so many chunks.
  bool exceeds_chunks(std::int64_t visits, double chunks) const {
    return static_cast<double>(visits) > chunks * static_cast<double>(chunk_);
  }
  /// Whether a tile is split into chunks. Short items cost more than they gain.
  bool is_long(std::int64_t visits) const { return exceeds_chunks(visits, cycles_.min_chunks); }

  void add_tile(std::size_t index, std::int64_t max_visits, std::vector<CostedItem>& items) {
    const KeyTile& tile = lists_.tiles[index];
    const bool in_chunks = is_long(tile.q_tiles);
    const auto id = static_cast<std::int32_t>(index);
    QueryCursor cursor(lists_, tile);
    do {
      std::int64_t floor = 0;
      std::int64_t last = tile.q_end - 1;
      if (in_chunks) {
        floor = (cursor.top() - 1) / chunk_ * chunk_;
        last = std::min<std::int64_t>(floor + chunk_, end_) - 1;
      }
      QueryCursor ahead = cursor;
      const std::int64_t visits = ahead.take(kAllVisits, static_cast<std::int32_t>(floor)).visits;
      const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(visits, max_visits));
      for (std::int64_t i = 0; i < parts; ++i) {
        const auto part = cursor.take(visits * (i + 1) / parts - visits * i / parts,
                                      static_cast<std::int32_t>(floor));
        const std::int64_t all = part.visits * head_blocks();
        items.push_back({{id, part.q_begin, part.q_end, -1}, all, item_cycles(cycles_, all), last});
      }
    } while (!cursor.done());
  }

  /// Block lists: all key tiles of all lists are split at the same query tiles, or none is.
  std::vector<std::vector<CostedItem>> make_for_block_lists() {
    const auto tiles = static_cast<std::size_t>(lists_.tiles_per_list);
    const auto average =
        visits_ / std::max<std::int64_t>(1, static_cast<std::int64_t>(lists_.tiles.size()));
    const bool in_chunks = is_long(average);
    if (in_chunks) {
      for (std::size_t i = 0; i < tiles; ++i) {
        lists_.split_keys.push_back({lists_.tiles[i].k_begin, lists_.tiles[i].k_end});
      }
    }
    const std::int64_t count = lists_.list_heads == 1 ? 1 : work_.heads_k;
    std::vector<std::vector<CostedItem>> orders(static_cast<std::size_t>(count));
    for (std::size_t order = 0; order < orders.size(); ++order) {
      for (std::size_t i = 0; i < tiles; ++i) {
        const CostedItem whole = whole_tile(order, i, lists_.list_heads / count);
        in_chunks ? split_in_chunks(whole, orders[order]) : orders[order].push_back(whole);
      }
    }
    return orders;
  }

  /// Key tile `index` of the `lists` lists of an order, not split.
  CostedItem whole_tile(std::size_t order, std::size_t index, std::int64_t lists) const {
    CostedItem whole = {{static_cast<std::int32_t>(index), 0, end_, -1}, 0, 0, -1};
    for (std::int64_t i = 0; i < lists; ++i) {
      const std::int64_t list = static_cast<std::int64_t>(order) * lists + i;
      const KeyTile& tile =
          lists_.tiles[static_cast<std::size_t>(list * lists_.tiles_per_list) + index];
      whole.visits += tile.q_tiles * head_blocks() / lists;
      whole.last = std::max<std::int64_t>(whole.last, tile.q_end - 1);
    }
    whole.cycles = item_cycles(cycles_, whole.visits);
    return whole;
  }

  void split_in_chunks(const CostedItem& whole, std::vector<CostedItem>& items) const {
    const std::int64_t chunks = ceil_div(end_, chunk_);
    for (std::int64_t i = chunks; i-- > 0;) {
      CostedItem part = whole;
      part.item.split = whole.item.tile;
      part.item.q_begin = static_cast<std::int32_t>(i * chunk_);
      part.item.q_end = static_cast<std::int32_t>(std::min<std::int64_t>((i + 1) * chunk_, end_));
      part.last = part.item.q_end - 1;
      part.visits = whole.visits / chunks;
      part.cycles = item_cycles(cycles_, part.visits);
      items.push_back(part);
    }
  }

  const BackwardWork& work_;
  const cost::SliceBackwardCycles& cycles_;
  TransposedLists& lists_;
  std::int64_t visits_ = 0;  ///< of all tiles, by one head block each
  std::int32_t end_ = 0;     ///< one past the last query tile visited
  std::int64_t chunk_ = 0;   ///< query tiles per chunk; kAllVisits: no chunks
};

}  // namespace

bool stays_in_cache(const BackwardWork& work, std::int64_t bytes) {
  return static_cast<double>(bytes) <= work.platform.slice.backward.kept_cache_share *
                                           static_cast<double>(work.platform.device.cache_bytes);
}

std::int64_t head_blocks_of(const BackwardWork& work, const TransposedLists& lists) {
  return work.heads_q / work.heads_k / lists.pack;
}

std::int64_t item_cycles(const cost::SliceBackwardCycles& cycles, std::int64_t visits) {
  return visits == 0 ? cycles.empty_tile_cycles
                     : cycles.key_tile_cycles + visits * cycles.query_tile_cycles;
}

std::int64_t even_cycles(std::span<const CostedItem> items, const BackwardWork& work) {
  std::int64_t cycles = 0;
  for (const CostedItem& item : items) cycles += item.cycles;
  return cycles * work.heads_k / work.ctas;
}

std::int64_t split_item_cycles(const cost::SliceBackwardCycles& cycles, std::int64_t visits) {
  return item_cycles(cycles, visits) + cycles.add_keys_cycles;
}

std::vector<std::vector<CostedItem>> make_items(const BackwardWork& work, TransposedLists& lists) {
  return ItemMaker(work, lists).make();
}

void group_items(std::vector<CostedItem>& items) {
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
  std::ranges::stable_sort(groups, std::greater<>{}, &Group::max_cycles);
  std::vector<CostedItem> sorted;
  sorted.reserve(items.size());
  for (const Group& group : groups) {
    sorted.insert(sorted.end(), items.begin() + static_cast<std::ptrdiff_t>(group.begin),
                  items.begin() + static_cast<std::ptrdiff_t>(group.end));
  }
  items.swap(sorted);
}

void split_item(const BackwardWork& work, const TransposedLists& lists, const CostedItem& item,
                std::int64_t parts, std::vector<CostedItem>& out) {
  const std::int64_t blocks = head_blocks_of(work, lists);
  const std::int64_t visits = item.visits / blocks;
  QueryCursor cursor(lists, lists.tiles[static_cast<std::size_t>(item.item.tile)]);
  cursor.take(kAllVisits, item.item.q_end);
  for (std::int64_t i = 0; i < parts; ++i) {
    const auto part = cursor.take(visits * (i + 1) / parts - visits * i / parts, item.item.q_begin);
    CostedItem next = item;
    next.item.q_begin = part.q_begin;
    next.item.q_end = part.q_end;
    next.visits = part.visits * blocks;
    next.cycles = split_item_cycles(work.platform.slice.backward, next.visits);
    out.push_back(next);
  }
}

void index_split_keys(std::span<CostedItem> items, TransposedLists& lists) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(lists.tiles_per_list));
  for (const CostedItem& item : items) ++counts[static_cast<std::size_t>(item.item.tile)];
  std::vector<std::int32_t> indices(counts.size(), -1);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 2) continue;
    indices[i] = static_cast<std::int32_t>(lists.split_keys.size());
    lists.split_keys.push_back({lists.tiles[i].k_begin, lists.tiles[i].k_end});
  }
  for (CostedItem& item : items) {
    item.item.split = indices[static_cast<std::size_t>(item.item.tile)];
  }
}

}  // namespace longca::slice
