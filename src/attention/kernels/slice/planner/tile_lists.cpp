#include "attention/kernels/slice/planner/tile_lists.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>

#include "attention/kernels/slice/planner/patterns.h"
#include "attention/kernels/slice/planner/tile_cover.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca::slice {
namespace {

/// A sub-tile of a partial tile, and what each row group sees of it.
struct PartialSubTile {
  std::int64_t k_begin = 0;
  /// Per row group the range of ListBuilder::words_ with its bands (BandWord).
  std::array<std::pair<std::size_t, std::size_t>, kRowGroups> words;

  bool seen_by(int group) const {
    const auto& range = words[static_cast<std::size_t>(group)];
    return range.first < range.second;
  }
  /// Class 0: both groups see it; 1: only group 0; 2: only group 1. Sub-tiles of one class are
  /// paired, so that a group that sees neither skips the tile.
  static constexpr std::size_t kClasses = 3;
  std::size_t seen_class() const { return seen_by(0) && seen_by(1) ? 0 : seen_by(0) ? 1 : 2; }
};

/// Appends the query tiles of one list of a mask to `out`.
class ListBuilder {
 public:
  ListBuilder(std::shared_ptr<const HeadView> view, const cost::SliceForwardCycles& rates,
              TileLists& out)
      : source_(std::move(view)),
        rates_(rates),
        patterns_(out.group_tokens(), out.patterns),
        out_(out) {}

  void build(Range rows) {
    const int step = out_.tile_tokens();
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += step) {
      add({begin, std::min(begin + step, rows.end)});
    }
  }

 private:
  void add(Range rows) {
    tile_rows_ = rows;
    bands_ = source_.advance(rows);
    cover_.cover(rows, bands_);
    counts_ = {};
    counts_.full = cover_.full_sub_tiles() / 2;
    QueryTile tile{};
    tile.row_begin = static_cast<std::int32_t>(rows.begin);
    tile.row_end = static_cast<std::int32_t>(rows.end);
    tile.runs_begin = static_cast<std::int32_t>(out_.runs.size());
    tile.full_tiles = static_cast<std::int32_t>(counts_.full);
    out_.runs.insert(out_.runs.end(), cover_.runs().begin(), cover_.runs().end());
    tile.partial_begin = static_cast<std::int32_t>(out_.partial.size());
    list_sub_tiles();
    tile.partial_count = static_cast<std::int32_t>(out_.partial.size()) - tile.partial_begin;
    tile.cost = saturated(counts_.cycles(rates_));
    out_.tiles.push_back(tile);
  }

  Range group_rows(int group) const {
    const std::int64_t begin = tile_rows_.begin + group * out_.group_tokens();
    return intersect({begin, begin + out_.group_tokens()}, tile_rows_);
  }

  void list_sub_tiles() {
    sub_tiles_.clear();
    words_.clear();
    first_band_ = 0;
    last_key_ = 0;
    for (const std::int64_t key : cover_.partial()) sub_tiles_.push_back(sub_tile_at(key));
    pair_sub_tiles();
  }

  /// Pairs the sub-tiles of each class. One left over becomes a narrow tile, and narrow tiles come
  /// first; but if class 0 has one left over and class 1 or 2 too, these are paired, last. One of
  /// class 1 and one of class 2 stay apart: a pair would cost both groups a whole tile.
  void pair_sub_tiles() {
    std::array<const PartialSubTile*, PartialSubTile::kClasses> last{};
    std::array<int, PartialSubTile::kClasses> count{};
    for (const PartialSubTile& sub_tile : sub_tiles_) {
      last[sub_tile.seen_class()] = &sub_tile;
      ++count[sub_tile.seen_class()];
    }
    const auto is_left = [&](std::size_t c) { return count[c] % 2 != 0; };
    const std::size_t partner = is_left(1) ? 1 : 2;  // for the one left over of class 0
    const bool mixed = is_left(0) && is_left(partner);
    for (std::size_t c = 0; c < last.size(); ++c) {
      const bool paired = mixed && (c == 0 || c == partner);
      if (is_left(c) && !paired) list_tile(*last[c], nullptr);
    }
    for (std::size_t c = 0; c < last.size(); ++c) {
      const PartialSubTile* first = nullptr;
      for (const PartialSubTile& sub_tile : sub_tiles_) {
        if (count[c] < 2) break;
        if (sub_tile.seen_class() != c) continue;
        if (first == nullptr) {
          first = &sub_tile;
          continue;
        }
        list_tile(*first, &sub_tile);
        first = nullptr;
        count[c] -= 2;
      }
    }
    if (mixed) list_tile(*last[0], last[partner]);
  }

  PartialSubTile sub_tile_at(std::int64_t key) {
    PartialSubTile sub_tile;
    sub_tile.k_begin = key;
    if (key < last_key_) first_band_ = 0;  // TileCover::partial has its one full sub-tile last
    last_key_ = key;
    while (first_band_ < bands_.size() && bands_[first_band_].k.end <= key) ++first_band_;
    for (int group = 0; group < kRowGroups; ++group) {
      const std::size_t begin = words_.size();
      const Range rows = group_rows(group);
      if (!rows.empty()) add_words(key, rows);
      sub_tile.words[static_cast<std::size_t>(group)] = {begin, words_.size()};
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
    std::array<RowPatterns::View, kRowGroups> views;
    std::int32_t levels = 1;
    for (std::size_t group = 0; group < kRowGroups; ++group) {
      tile_words_.clear();
      for (std::size_t i = first.words[group].first; i < first.words[group].second; ++i) {
        tile_words_.push_back(words_[i]);
      }
      if (second != nullptr) {
        for (std::size_t i = second->words[group].first; i < second->words[group].second; ++i) {
          tile_words_.push_back(BandWord::second(words_[i]));
        }
      }
      const auto tokens = static_cast<int>(group_rows(static_cast<int>(group)).size());
      views[group] = patterns_.view(tile_words_, std::max(tokens, 0));
      levels = std::max(levels, views[group].levels);
    }
    for (std::int32_t level = 0; level < levels; ++level) {
      PartialTile tile{};
      tile.k_begin[0] = static_cast<std::int32_t>(first.k_begin);
      tile.k_begin[1] = second != nullptr ? static_cast<std::int32_t>(second->k_begin) : kAbsent;
      for (std::size_t group = 0; group < kRowGroups; ++group) {
        tile.pattern[group] = pattern_of(views[group], level);
      }
      out_.partial.push_back(tile);
      ++(second != nullptr ? counts_.partial : counts_.narrow);
    }
  }

  /// A group that needs fewer patterns than the other one sees nothing in the later tiles.
  static std::int32_t pattern_of(const RowPatterns::View& view, std::int32_t level) {
    if (level >= view.levels) return kNone;
    return view.first < 0 ? view.first : view.first + level;
  }

  TileBands source_;
  const cost::SliceForwardCycles& rates_;
  TileCover cover_;
  RowPatterns patterns_;
  TileLists& out_;
  Range tile_rows_;
  std::span<const Band> bands_;
  std::size_t first_band_ = 0;  ///< first of bands_ whose keys may reach last_key_ or beyond
  std::int64_t last_key_ = 0;
  TileCounts counts_;
  std::vector<PartialSubTile> sub_tiles_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> tile_words_;
};

/// Indices of `tiles` by descending cost, stable. A radix sort: a plan of milliseconds sorts tens
/// of thousands of tiles.
std::vector<std::int32_t> longest_first(std::span<const QueryTile> tiles) {
  constexpr int kBits = 11;
  constexpr std::uint32_t kMask = (1U << kBits) - 1;
  struct Key {
    std::uint32_t digits;  ///< complement of the cost
    std::int32_t index;
  };
  std::vector<Key> keys;
  keys.reserve(tiles.size());
  for (const QueryTile& tile : tiles) {
    keys.push_back(
        {~static_cast<std::uint32_t>(tile.cost), static_cast<std::int32_t>(keys.size())});
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

/// Query tiles of block lists that one thread makes at a time.
constexpr std::int64_t kTilesPerPart = 256;

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Appends a part, whose indices into runs, partial tiles and patterns start at 0.
void append(TileLists& lists, const TileLists& part) {
  const auto count = [](const auto& values) { return static_cast<std::int32_t>(values.size()); };
  const auto patterns = static_cast<std::int32_t>(count(lists.patterns) / lists.group_tokens());
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
  const std::int64_t tokens = kTilesPerPart * lists.tile_tokens();
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
    part.pack = lists.pack;
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

TileLists make_tile_lists(const Mask& mask, int pack, const cost::Platform& platform) {
  LONGCA_CHECK(pack == 1 || pack == 2 || pack == 4 || pack == 8, "a pack of {} heads", pack);
  TileLists lists;
  lists.pack = pack;
  lists.list_heads = mask.heads();
  lists.tiles_per_list = (mask.q_tokens() + lists.tile_tokens() - 1) / lists.tile_tokens();
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

void order_tiles(TileLists& lists) {
  lists.order.clear();
  for (std::int64_t list = 0; list < lists.list_heads; ++list) {
    const auto tiles = std::span(lists.tiles)
                           .subspan(static_cast<std::size_t>(list * lists.tiles_per_list),
                                    static_cast<std::size_t>(lists.tiles_per_list));
    append(lists.order, longest_first(tiles));
  }
}

}  // namespace longca::slice
