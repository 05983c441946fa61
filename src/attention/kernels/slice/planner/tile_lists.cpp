#include "attention/kernels/slice/planner/tile_lists.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>

#include "attention/kernels/slice/planner/block_cuts.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "attention/kernels/slice/planner/patterns.h"
#include "attention/kernels/slice/planner/tile_cover.h"
#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/block_draw.h"

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
  Joint joint;
  /// Per row group the range of ListBuilder::words_ with its bands (BandWord).
  std::array<std::pair<std::size_t, std::size_t>, kMaxRowGroups> words{};
  Groups seen_by = 0;
};

/// The end of a range of keys, fewer than a sub-tile has, each of which a row sees with all others
/// of them or not at all.
struct Remainder {
  PartialSubTile* sub_tile;
  int keys;
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

  /// `bounds`: of the query tiles' rows, or of those of pairs of tiles.
  void build(std::span<const std::int64_t> bounds) {
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) add({bounds[i], bounds[i + 1]});
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
      if (tiling_.joins) out_.joints.insert(out_.joints.end(), joints_.begin(), joints_.end());
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
    joints_.clear();
    first_band_ = 0;
    last_key_ = 0;
    for (const std::int64_t key : cover_.partial()) sub_tiles_.push_back(sub_tile_at(key));
    if (tiling_.joins) join_remainders();
    pair_sub_tiles();
  }

  /// Keys of a sub-tile that is a remainder, else 0.
  int remainder_of(const PartialSubTile& sub_tile) const {
    int keys = 0;
    for (const auto& [begin, end] : sub_tile.words) {
      for (std::size_t w = begin; w < end; ++w) {
        const int of_band = BandWord(words_[w]).prefix_end();
        if (of_band == 0 || of_band == kSubTileKeys || (keys > 0 && of_band != keys)) return 0;
        keys = of_band;
      }
    }
    return keys;
  }

  /// Joins remainders that the same groups see, as many pairs as fit.
  void join_remainders() {
    remainders_.clear();
    for (PartialSubTile& sub_tile : sub_tiles_) {
      if (const int keys = remainder_of(sub_tile); keys > 0)
        remainders_.push_back({&sub_tile, keys});
    }
    std::ranges::stable_sort(remainders_, [](const Remainder& a, const Remainder& b) {
      return std::pair(a.sub_tile->seen_by, b.keys) < std::pair(b.sub_tile->seen_by, a.keys);
    });
    for (auto begin = remainders_.begin(); begin < remainders_.end();) {
      const auto end = std::find_if(begin, remainders_.end(), [&](const Remainder& other) {
        return other.sub_tile->seen_by != begin->sub_tile->seen_by;
      });
      pair_remainders(begin, end,
                      [&](const Remainder& a, const Remainder& b) { return join(a, b); });
      begin = end;
    }
    std::erase_if(sub_tiles_, [](const PartialSubTile& sub_tile) { return sub_tile.seen_by == 0; });
  }

  /// Joins two remainders if they fit into a sub-tile. The one with the greater keys comes before
  /// the cut, and up to it, so that a row sees one range of columns: as the other one has a
  /// sub-tile of its own before those keys, nothing is loaded from below key 0. The other one is
  /// then seen by nobody.
  bool join(const Remainder& a, const Remainder& b) {
    const bool in_order = a.sub_tile->k_begin > b.sub_tile->k_begin;
    const Remainder& before_cut = in_order ? a : b;
    const Remainder& behind_cut = in_order ? b : a;
    const auto cut = static_cast<int>(joint_columns(before_cut.keys));
    PartialSubTile& joined = *before_cut.sub_tile;
    PartialSubTile& other = *behind_cut.sub_tile;
    const std::int64_t end = joined.k_begin + before_cut.keys;
    const std::int64_t skip = other.k_begin - end;
    if (cut + joint_columns(behind_cut.keys) > kSubTileKeys || -skip > Joint::kMaxSkip)
      return false;
    for (std::size_t group = 0; group < joined.words.size(); ++group) {
      const std::size_t begin = words_.size();
      append_moved(joined.words[group], cut - before_cut.keys);
      append_moved(other.words[group], cut);
      joined.words[group] = {begin, words_.size()};
    }
    joined.k_begin = end - cut;
    joined.joint = Joint(cut, static_cast<std::int32_t>(skip));
    other.seen_by = 0;
    return true;
  }

  void append_moved(std::pair<std::size_t, std::size_t> words, int by) {
    for (std::size_t w = words.first; w < words.second; ++w) {
      words_.push_back(BandWord::moved(words_[w], by));
    }
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
      joints_.push_back({first.joint, second != nullptr ? second->joint : Joint()});
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
  std::vector<Remainder> remainders_;
  std::array<std::vector<PartialTile>, kMaxTogether> partial_;  ///< of each query tile
  std::vector<TileJoints> joints_;                              ///< of those of either
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

/// Bounds of the rows of query tiles, or of pairs of them: the same for all lists.
std::vector<std::int64_t> row_bounds(const Mask& mask, const Tiling& tiling,
                                     const cost::SliceForwardCycles& rates) {
  if (mask.blocks() == nullptr || tiling.row_pairs || has_block_plan(mask, tiling.pack)) {
    return uniform_bounds(mask.q_tokens(), std::int64_t{tiling.tile_tokens()} * tiling.tiles());
  }
  const TileCosts costs = {
      .start = static_cast<double>(rates.tile_start_cycles) * mask.heads(),
      .token = static_cast<double>(rates.full_tile_cycles) / kTileKeys,
      .half_share = rates.half_tile_share,
  };
  return cut_at_blocks(*mask.blocks(), BlockSide::queries, tiling.tile_tokens(), costs);
}

/// Query tiles of block lists that one thread makes at a time, or pairs of them.
constexpr std::int64_t kTilesPerPart = 256;

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Appends a part, whose indices into runs, partial tiles and patterns start at 0.
void append(TileLists& lists, const TileLists& part) {
  const auto count = [](const auto& values) { return static_cast<std::int32_t>(values.size()); };
  const auto patterns =
      static_cast<std::int32_t>(std::ssize(lists.patterns) / lists.tiling.group_tokens());
  for (QueryTile tile : part.tiles) {
    tile.partial_begin += count(lists.partial);
    tile.runs_begin += count(lists.runs);
    lists.tiles.push_back(tile);
  }
  for (PartialTile tile : part.partial) {
    for (std::int32_t& pattern : tile.pattern) pattern += pattern < 0 ? 0 : patterns;
    lists.partial.push_back(tile);
  }
  append(lists.joints, part.joints);
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
void build_parts(const Mask& mask, std::span<const std::int64_t> bounds,
                 const cost::SliceForwardCycles& rates, TileLists& lists) {
  const std::int64_t steps = std::ssize(bounds) - 1;
  const std::int64_t parts_per_list = ceil_div(steps, kTilesPerPart);
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
    const std::int64_t begin = i % parts_per_list * kTilesPerPart;
    const std::int64_t count = std::min(kTilesPerPart, steps - begin);
    ListBuilder(views[static_cast<std::size_t>(i / parts_per_list)], rates, part)
        .build(
            bounds.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count) + 1));
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
  const std::vector<std::int64_t> bounds = row_bounds(mask, tiling, platform.slice.forward);
  lists.tiles_per_list = (std::ssize(bounds) - 1) * tiling.tiles();
  if (mask.blocks() == nullptr) {
    reserve(lists);
    const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
    ListBuilder(view, platform.slice.forward, lists).build(bounds);
  } else {
    build_parts(mask, bounds, platform.slice.forward, lists);
  }
  const std::int64_t patterns = std::ssize(lists.patterns) / tiling.group_tokens();
  LONGCA_CHECK(std::ssize(lists.partial) < INT32_MAX && std::ssize(lists.runs) < INT32_MAX &&
                   patterns < INT32_MAX,
               "lists of {} tiles, {} runs and {} patterns: the limit is {} of each",
               lists.partial.size(), lists.runs.size(), patterns, INT32_MAX);
  const auto exists = [](const TileJoints& of) {
    return of.joint[0].exists() || of.joint[1].exists();
  };
  if (std::ranges::none_of(lists.joints, exists)) lists.joints.clear();
  order_tiles(lists);
  return lists;
}

KeyTilesPerQueryTile key_tiles_per_query_tile(const TileLists& lists) {
  if (lists.tiles.empty()) return {};
  std::int64_t full = 0, partial = 0;
  for (const QueryTile& tile : lists.tiles) {
    full += tile.full_tiles;
    partial += tile.partial_count;
  }
  const auto tiles = static_cast<double>(lists.tiles.size());
  return {static_cast<double>(full) / tiles, static_cast<double>(full + partial) / tiles};
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
