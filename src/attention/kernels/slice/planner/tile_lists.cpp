#include "attention/kernels/slice/planner/tile_lists.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "attention/kernels/slice/planner/patterns.h"
#include "attention/kernels/slice/planner/tile_cover.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca::slice {
namespace {

/// Query tiles that have the same key tiles, at most, and the row groups of all of them.
constexpr std::size_t kMaxTogether = 2;
constexpr std::size_t kMaxRowGroups = kMaxTogether * kRowGroups;

/// A set of row groups, bit g for group g. Sub-tiles that the same groups see are paired, so that a
/// group that sees neither skips the tile.
using Groups = unsigned;

/// All sets of `groups` row groups but the empty one: larger ones first, so that a subset comes
/// later.
std::vector<Groups> group_sets(int groups) {
  std::vector<Groups> sets;
  for (Groups set = 1; set < 1U << groups; ++set) sets.push_back(set);
  std::ranges::stable_sort(sets, std::greater{}, [](Groups set) { return std::popcount(set); });
  return sets;
}

/// A sub-tile of a partial tile, and what each row group sees of it.
struct PartialSubTile {
  std::int64_t k_begin = 0;
  /// Per row group the range of ListBuilder::words_ with its bands (BandWord).
  std::array<std::pair<std::size_t, std::size_t>, kMaxRowGroups> words{};
  Groups seen_by = 0;
};

/// Appends the query tiles of one list of a mask to `out`.
class ListBuilder {
 public:
  ListBuilder(std::shared_ptr<const HeadView> view, const cost::SliceForwardCycles& rates,
              TileLists& out)
      : source_(std::move(view)),
        rates_(rates),
        tiling_(out.tiling),
        sets_(group_sets(groups())),
        patterns_(out.tiling.group_tokens(), out.patterns),
        out_(out) {}

  void build(Range rows) {
    const int step = tiling_.tile_tokens() * tiling_.tiles();
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += step) {
      add({begin, std::min(begin + step, rows.end)});
    }
  }

 private:
  int groups() const { return tiling_.tiles() * kRowGroups; }

  /// Appends the query tile of `rows`, or the two that have its key tiles.
  void add(Range rows) {
    tile_rows_ = rows;
    bands_ = source_.advance(rows);
    cover_.cover(rows, bands_);
    const auto runs_begin = static_cast<std::int32_t>(out_.runs.size());
    out_.runs.insert(out_.runs.end(), cover_.runs().begin(), cover_.runs().end());
    list_sub_tiles();
    for (int i = 0; i < tiling_.tiles(); ++i) {
      const std::vector<PartialTile>& partial = partial_[static_cast<std::size_t>(i)];
      const TileCounts counts = counts_of(partial);
      const std::int64_t begin = rows.begin + std::int64_t{i} * tiling_.tile_tokens();
      QueryTile tile{};
      tile.row_begin = static_cast<std::int32_t>(std::min(begin, rows.end));
      tile.row_end = static_cast<std::int32_t>(std::min(begin + tiling_.tile_tokens(), rows.end));
      tile.runs_begin = runs_begin;
      tile.full_tiles = static_cast<std::int32_t>(counts.full);
      tile.partial_begin = static_cast<std::int32_t>(out_.partial.size());
      tile.partial_count = static_cast<std::int32_t>(partial.size());
      tile.cost = saturated(counts.cycles(rates_));
      out_.partial.insert(out_.partial.end(), partial.begin(), partial.end());
      out_.tiles.push_back(tile);
    }
  }

  /// The key tiles of a query tile that has `partial` ones: of these, those that it sees.
  TileCounts counts_of(std::span<const PartialTile> partial) const {
    TileCounts counts;
    counts.full = cover_.full_sub_tiles() / 2;
    for (const PartialTile& tile : partial) {
      if (tile.pattern[0] == kNone && tile.pattern[1] == kNone) continue;
      ++(tile.k_begin[1] == kAbsent ? counts.narrow : counts.partial);
    }
    return counts;
  }

  Range group_rows(int group) const {
    const std::int64_t begin = tile_rows_.begin + std::int64_t{group} * tiling_.group_tokens();
    return intersect({begin, begin + tiling_.group_tokens()}, tile_rows_);
  }

  void list_sub_tiles() {
    sub_tiles_.clear();
    words_.clear();
    for (std::vector<PartialTile>& partial : partial_) partial.clear();
    first_band_ = 0;
    last_key_ = 0;
    for (const std::int64_t key : cover_.partial()) sub_tiles_.push_back(sub_tile_at(key));
    pair_sub_tiles();
  }

  /// Pairs the sub-tiles that the same groups see. One left over is paired with another whose
  /// groups all see it, last; or else it becomes a narrow tile, and these come first. Two left over
  /// of different groups stay apart: a pair would cost each a whole tile.
  void pair_sub_tiles() {
    left_.clear();
    pairs_.clear();
    std::uint32_t present = 0;  // bit s: some sub-tile is seen by the set s
    for (const PartialSubTile& sub_tile : sub_tiles_) present |= 1U << sub_tile.seen_by;
    for (const Groups set : sets_) {
      if ((present >> set & 1) == 0) continue;
      const PartialSubTile* first = nullptr;
      for (const PartialSubTile& sub_tile : sub_tiles_) {
        if (sub_tile.seen_by != set) continue;
        if (first != nullptr) pairs_.emplace_back(first, &sub_tile);
        first = first == nullptr ? &sub_tile : nullptr;
      }
      if (first != nullptr) left_.push_back(first);
    }
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const auto is_part = [&](const PartialSubTile* other) {
        return (other->seen_by & ~left_[i]->seen_by) == 0;
      };
      const auto after = left_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      const auto partner = std::find_if(after, left_.end(), is_part);
      if (partner == left_.end()) {
        list_tile(*left_[i], nullptr);
      } else {
        pairs_.emplace_back(left_[i], *partner);
        left_.erase(partner);
      }
    }
    for (const auto& [first, second] : pairs_) list_tile(*first, second);
  }

  PartialSubTile sub_tile_at(std::int64_t key) {
    PartialSubTile sub_tile;
    sub_tile.k_begin = key;
    if (key < last_key_) first_band_ = 0;  // TileCover::partial has its one full sub-tile last
    last_key_ = key;
    while (first_band_ < bands_.size() && bands_[first_band_].k.end <= key) ++first_band_;
    for (int group = 0; group < groups(); ++group) {
      const std::size_t begin = words_.size();
      const Range rows = group_rows(group);
      if (!rows.empty()) add_words(key, rows);
      sub_tile.words[static_cast<std::size_t>(group)] = {begin, words_.size()};
      if (words_.size() > begin) sub_tile.seen_by |= 1U << group;
    }
    return sub_tile;
  }

  /// Appends what a row group's `rows` see of the sub-tile at `key`.
  void add_words(std::int64_t key, Range rows) {
    for (const Band& band : bands_.subspan(first_band_)) {
      if (band.k.begin >= key + kSubTileKeys) break;
      if (const std::uint64_t word = BandWord::of(band, rows, key)) words_.push_back(word);
    }
  }

  /// Appends a partial tile, more than once where a row has more than two intervals.
  void list_tile(const PartialSubTile& first, const PartialSubTile* second) {
    std::array<RowPatterns::View, kMaxRowGroups> views;
    std::int32_t levels = 1;
    for (int i = 0; i < groups(); ++i) {
      const auto group = static_cast<std::size_t>(i);
      tile_words_.clear();
      for (std::size_t w = first.words[group].first; w < first.words[group].second; ++w) {
        tile_words_.push_back(words_[w]);
      }
      if (second != nullptr) {
        for (std::size_t w = second->words[group].first; w < second->words[group].second; ++w) {
          tile_words_.push_back(BandWord::second(words_[w]));
        }
      }
      const auto tokens = static_cast<int>(group_rows(i).size());
      views[group] = patterns_.view(tile_words_, std::max(tokens, 0));
      levels = std::max(levels, views[group].levels);
    }
    for (std::int32_t level = 0; level < levels; ++level) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(tiling_.tiles()); ++i) {
        PartialTile tile{};
        tile.k_begin[0] = static_cast<std::int32_t>(first.k_begin);
        tile.k_begin[1] = second != nullptr ? static_cast<std::int32_t>(second->k_begin) : kAbsent;
        for (std::size_t group = 0; group < kRowGroups; ++group) {
          tile.pattern[group] = pattern_of(views[i * kRowGroups + group], level);
        }
        partial_[i].push_back(tile);
      }
    }
  }

  /// A group that needs fewer patterns than the other one sees nothing in the later tiles.
  static std::int32_t pattern_of(const RowPatterns::View& view, std::int32_t level) {
    if (level >= view.levels) return kNone;
    return view.first < 0 ? view.first : view.first + level;
  }

  TileBands source_;
  const cost::SliceForwardCycles& rates_;
  const Tiling tiling_;
  const std::vector<Groups> sets_;
  TileCover cover_;
  RowPatterns patterns_;
  TileLists& out_;
  Range tile_rows_;
  std::span<const Band> bands_;
  std::size_t first_band_ = 0;  ///< first of bands_ whose keys may reach last_key_ or beyond
  std::int64_t last_key_ = 0;
  std::vector<PartialSubTile> sub_tiles_;
  std::vector<const PartialSubTile*> left_;
  std::vector<std::pair<const PartialSubTile*, const PartialSubTile*>> pairs_;
  std::array<std::vector<PartialTile>, kMaxTogether> partial_;  ///< of each query tile
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> tile_words_;
};

/// Indices of `costs`, descending, stable. A radix sort: a plan of milliseconds sorts tens of
/// thousands of tiles.
std::vector<std::int32_t> longest_first(std::span<const std::int32_t> costs) {
  constexpr int kBits = 11;
  constexpr std::uint32_t kMask = (1U << kBits) - 1;
  struct Key {
    std::uint32_t digits;  ///< complement of the cost
    std::int32_t index;
  };
  std::vector<Key> keys;
  keys.reserve(costs.size());
  for (const std::int32_t cost : costs) {
    keys.push_back({~static_cast<std::uint32_t>(cost), static_cast<std::int32_t>(keys.size())});
  }
  std::vector<Key> sorted(keys.size());
  std::vector<std::size_t> next(kMask + 2);
  for (int shift = 0; shift < 32; shift += kBits) {
    std::fill(next.begin(), next.end(), 0);
    for (const Key& key : keys) ++next[(key.digits >> shift & kMask) + 1];
    if (std::ranges::find(next, keys.size()) != next.end()) continue;  // all have the same digit
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    for (const Key& key : keys) sorted[next[key.digits >> shift & kMask]++] = key;
    keys.swap(sorted);
  }
  std::vector<std::int32_t> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(key.index);
  return order;
}

/// Query tiles of block lists that one thread makes at a time: whole pairs.
constexpr std::int64_t kTilesPerPart = 256;

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Appends a part, whose indices into runs, partial tiles and patterns start at 0.
void append(TileLists& lists, const TileLists& part) {
  const auto count = [](const auto& values) { return static_cast<std::int32_t>(values.size()); };
  const auto patterns =
      static_cast<std::int32_t>(count(lists.patterns) / lists.tiling.group_tokens());
  for (QueryTile tile : part.tiles) {
    tile.partial_begin += count(lists.partial);
    tile.runs_begin += count(lists.runs);
    lists.tiles.push_back(tile);
  }
  for (PartialTile tile : part.partial) {
    for (std::int32_t& pattern : tile.pattern) pattern += pattern < 0 ? 0 : patterns;
    lists.partial.push_back(tile);
  }
  append(lists.runs, part.runs);
  append(lists.patterns, part.patterns);
}

/// Reserves for what most masks have: about one partial tile and one run per query tile.
void reserve(TileLists& lists) {
  const auto tiles = static_cast<std::size_t>(lists.tiles_per_list);
  lists.tiles.reserve(tiles);
  lists.partial.reserve(tiles);
  lists.runs.reserve(tiles);
}

/// Block lists are long: all threads make them, in parts that do not depend on the number of
/// threads, so that neither do the lists.
void build_parts(const Mask& mask, const cost::SliceForwardCycles& rates, TileLists& lists) {
  const std::int64_t tokens = kTilesPerPart * lists.tiling.tile_tokens();
  const std::int64_t parts_per_list = (mask.q_tokens() + tokens - 1) / tokens;
  std::vector<std::shared_ptr<const HeadView>> views(static_cast<std::size_t>(mask.heads()));
  std::vector<TileLists> parts(static_cast<std::size_t>(parts_per_list * lists.list_heads));
  ThreadPool& pool = ThreadPool::global();
  pool.parallel_for(std::ssize(views), [&](std::int64_t list, int) {
    views[static_cast<std::size_t>(list)] =
        std::make_shared<const HeadView>(HeadView::of(mask, static_cast<int>(list)));
  });
  pool.parallel_for(std::ssize(parts), [&](std::int64_t i, int) {
    TileLists& part = parts[static_cast<std::size_t>(i)];
    part.tiling = lists.tiling;
    const std::int64_t begin = i % parts_per_list * tokens;
    ListBuilder(views[static_cast<std::size_t>(i / parts_per_list)], rates, part)
        .build({begin, std::min(begin + tokens, mask.q_tokens())});
  });
  for (TileLists& part : parts) {
    append(lists, part);
    part = {};
  }
}

}  // namespace

TileLists make_tile_lists(const Mask& mask, const Tiling& tiling, const cost::Platform& platform) {
  const int pack = tiling.pack;
  LONGCA_CHECK(pack == 1 || pack == 2 || pack == 4 || pack == 8, "a pack of {} heads", pack);
  TileLists lists;
  lists.tiling = tiling;
  lists.list_heads = mask.heads();
  const std::int64_t step = std::int64_t{tiling.tile_tokens()} * tiling.tiles();
  lists.tiles_per_list = (mask.q_tokens() + step - 1) / step * tiling.tiles();
  if (mask.blocks() == nullptr) {
    reserve(lists);
    const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
    ListBuilder(view, platform.slice.forward, lists).build({0, mask.q_tokens()});
  } else {
    build_parts(mask, platform.slice.forward, lists);
  }
  order_tiles(lists);
  return lists;
}

double full_tiles_per_query_tile(const TileLists& lists) {
  std::int64_t full_tiles = 0;
  for (const QueryTile& tile : lists.tiles) full_tiles += tile.full_tiles;
  return lists.tiles.empty()
             ? 0
             : static_cast<double>(full_tiles) / static_cast<double>(lists.tiles.size());
}

void order_tiles(TileLists& lists) {
  const int together = lists.tiling.tiles();
  lists.order.clear();
  std::vector<std::int32_t> costs;
  for (std::int64_t list = 0; list < lists.list_heads; ++list) {
    const auto tiles = std::span(lists.tiles)
                           .subspan(static_cast<std::size_t>(list * lists.tiles_per_list),
                                    static_cast<std::size_t>(lists.tiles_per_list));
    costs.clear();
    for (std::size_t i = 0; i < tiles.size(); i += static_cast<std::size_t>(together)) {
      std::int64_t cost = 0;
      for (const QueryTile& tile : tiles.subspan(i, static_cast<std::size_t>(together))) {
        cost += tile.cost;
      }
      costs.push_back(saturated(cost));
    }
    for (const std::int32_t first : longest_first(costs)) {
      for (int i = 0; i < together; ++i) lists.order.push_back(first * together + i);
    }
  }
}

}  // namespace longca::slice
