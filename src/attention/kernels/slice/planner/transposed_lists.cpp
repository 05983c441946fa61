#include "attention/kernels/slice/planner/transposed_lists.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "attention/kernels/slice/planner/block_cuts.h"
#include "attention/kernels/slice/planner/block_lists.h"
#include "attention/kernels/slice/planner/dq_order.h"
#include "attention/kernels/slice/planner/patterns.h"
#include "attention/kernels/slice/planner/tile_cover.h"
#include "attention/kernels/slice/planner/work_order.h"
#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"

namespace longca::slice {
namespace {

/// Indices into segments are of 32 bits.
void check_segments(std::int64_t segments) {
  LONGCA_CHECK(segments < INT32_MAX, "lists of {} segments: the limit is {}", segments, INT32_MAX);
}

/// All k_begin and k_end of the slices, ascending; the number of keys comes last.
std::vector<std::int64_t> breaks_of(const Mask& mask) {
  std::vector<std::int64_t> breaks = {mask.k_tokens()};
  for (const MaskSlice& slice : mask.slices()) {
    breaks.push_back(slice.k_begin);
    breaks.push_back(slice.k_end);
  }
  std::sort(breaks.begin(), breaks.end());
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  return breaks;
}

/// Bounds of key tiles of a mask with block lists, from what the visits of all heads cost.
std::vector<std::int64_t> block_key_bounds(const Mask& mask, const BackwardWork& work) {
  const cost::SliceBackwardCycles& cycles = work.platform.slice.backward;
  const auto rows = static_cast<double>(mask.q_tokens()) * work.heads_q / work.heads_k;
  const double chunk_rows = static_cast<double>(work.chunk_visits) * kBackwardRows;
  const double chunks = work.has_chunks ? std::max(1.0, rows / chunk_rows) : 1;
  const double heads_per_list = static_cast<double>(work.heads_q) / mask.heads();
  const TileCosts costs = {
      .start = static_cast<double>(cycles.key_tile_cycles) * chunks * work.heads_k,
      .token = static_cast<double>(cycles.query_tile_cycles) * heads_per_list / kBackwardRows,
      .half_share = work.tells_halves ? cycles.half_visit_share : 1,
      .short_share = cycles.masked_visit_share,  // no row sees the keys that are not there
  };
  return cut_at_blocks(*mask.blocks(), BlockSide::keys, work.tile_keys, costs);
}

/// Bounds of key tiles of at most work.tile_keys keys, ascending from 0 to the number of keys. A
/// tile starts where the keys of a slice do (a document) if that saves the slice a tile.
std::vector<std::int64_t> key_bounds(const Mask& mask, int pack, const BackwardWork& work) {
  if (mask.blocks() != nullptr && !has_block_plan(mask, pack)) return block_key_bounds(mask, work);
  const std::int64_t tile_keys = work.tile_keys;
  const std::int64_t keys = mask.k_tokens();
  const std::vector<std::int64_t> breaks = breaks_of(mask);
  std::vector<std::int64_t> bounds = {0};
  auto next = breaks.begin();  // the first break after the tile's first key
  while (bounds.back() < keys) {
    std::int64_t end = std::min(bounds.back() + tile_keys, keys);
    while (next != breaks.end() && *next <= bounds.back()) ++next;
    // A slice that starts in this tile and ends later: would it need fewer tiles without this one?
    for (auto it = next; it != breaks.end() && *it < end; ++it) {
      const auto after = it + 1;
      if (after == breaks.end() || *after <= end) continue;
      const std::int64_t length = *after - *it;
      if (ceil_div(length, tile_keys) < 1 + ceil_div(length - (end - *it), tile_keys)) end = *it;
      break;
    }
    bounds.push_back(end);
  }
  return bounds;
}

/// Walks the key tiles of one list, ascending, and finds the query tiles that see them.
class SegmentFinder {
 public:
  SegmentFinder(std::shared_ptr<const HeadView> view, int tile_tokens, int tile_keys,
                SeenRows& seen_rows)
      : queries_(view->columns),
        step_(tile_tokens),
        tile_keys_(tile_keys),
        source_(std::move(view)),
        seen_rows_(seen_rows) {}

  /// The segments of `keys`, the last query tiles first; later calls ask for later keys.
  std::span<const QuerySegment> find(Range keys) {
    segments_.clear();
    first_band_ = 0;
    keys_ = keys;
    bands_ = source_.advance(keys);
    find_ranges();
    find_cuts();
    std::int64_t done = 0;
    std::size_t common = 0;
    for (const Range& seen : seen_) {
      std::int64_t tile = std::max(seen.begin / step_, done);
      done = ceil_div(seen.end, step_);
      while (tile < done) tile += add_from(tile, done, common);
    }
    std::reverse(segments_.begin(), segments_.end());
    return segments_;
  }

 private:
  struct Edge {
    std::int64_t query;
    std::int64_t keys;  ///< how many begin to be seen here, or, negative, cease to be
  };

  /// Finds the queries that see some of the keys (seen_), and those that see all of a whole tile
  /// (common_), as far as whole bands show it; the others are found by pattern (SeenRows).
  void find_ranges() {
    seen_.clear();
    edges_.clear();
    for (const Band& band : bands_) {
      const Range first = band.keys_of(band.q.begin);
      const Range last = band.keys_of(band.q.end - 1);
      seen_.push_back({first.begin, last.end});
      if (last.begin >= first.end) continue;
      edges_.push_back({last.begin, band.q.size()});
      edges_.push_back({first.end, -band.q.size()});
    }
    join_ranges(seen_);
    std::sort(edges_.begin(), edges_.end(),
              [](const Edge& a, const Edge& b) { return a.query < b.query; });
    common_.clear();
    std::int64_t seen = 0;
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
      seen += edges_[i].keys;
      if (seen == tile_keys_ && edges_[i].query < edges_[i + 1].query) {
        common_.push_back({edges_[i].query, edges_[i + 1].query});
      }
    }
    join_ranges(common_);
  }

  /// Adds query tiles from `tile` on that see all keys, or that have one pattern; returns how many,
  /// those that see nothing included.
  std::int64_t add_from(std::int64_t tile, std::int64_t end, std::size_t& common) {
    const std::int64_t token = tile * step_;
    while (common < common_.size() && common_[common].end <= token) ++common;
    if (common < common_.size() && common_[common].begin <= token) {
      const std::int64_t last = common_[common].end;
      const std::int64_t full_end = last == queries_ ? end : std::min(last / step_, end);
      if (full_end > tile) {
        add(tile, full_end - tile, kFull);
        return full_end - tile;
      }
    }
    const Range queries = {token, std::min(token + step_, queries_)};
    // With block lists a key tile has as many bands as there are blocks: skips those before.
    while (first_band_ < bands_.size() && bands_[first_band_].k.end <= token) ++first_band_;
    const std::int32_t pattern = seen_rows_.pattern(bands_.subspan(first_band_), keys_, queries);
    const std::int64_t count = std::min(tiles_alike(token), end - tile);
    if (pattern != kNone) add(tile, count, pattern);
    return count;
  }

  /// Finds the queries at which rectangles begin or end: all query tiles between two of these see
  /// the same. None if a band is cut by a diagonal.
  void find_cuts() {
    cuts_.clear();
    next_cut_ = 0;
    for (const Band& band : bands_) {
      if (!is_rectangle(band)) {
        cuts_.clear();
        return;
      }
      cuts_.push_back(band.k.begin);
      cuts_.push_back(band.k.end);
    }
    std::sort(cuts_.begin(), cuts_.end());
  }

  static bool is_rectangle(const Band& band) {
    return band.lo <= band.k.begin - band.q.end + 1 && band.hi >= band.k.end - 1 - band.q.begin;
  }

  /// How many whole tiles from `token` on see the same as the first; 1 at least.
  std::int64_t tiles_alike(std::int64_t token) {
    while (next_cut_ < cuts_.size() && cuts_[next_cut_] <= token) ++next_cut_;
    if (next_cut_ == cuts_.size()) return 1;
    return std::max<std::int64_t>(1, (cuts_[next_cut_] - token) / step_);
  }

  void add(std::int64_t tile, std::int64_t count, std::int32_t pattern) {
    if (!segments_.empty()) {
      QuerySegment& before = segments_.back();
      if (before.pattern == pattern && before.q_tile + before.count == tile) {
        before.count += static_cast<std::int32_t>(count);
        return;
      }
    }
    segments_.push_back(
        {static_cast<std::int32_t>(tile), static_cast<std::int32_t>(count), pattern, 0});
  }

  std::int64_t queries_;
  std::int64_t step_;
  std::int64_t tile_keys_;
  TileBands source_;
  SeenRows& seen_rows_;
  Range keys_;
  std::span<const Band> bands_;
  std::size_t first_band_ = 0;  ///< first of bands_ whose queries may reach the current query tile
  std::vector<Range> seen_;
  std::vector<Range> common_;
  std::vector<Edge> edges_;
  std::vector<std::int64_t> cuts_;
  std::size_t next_cut_ = 0;
  std::vector<QuerySegment> segments_;
};

void add_tile(Range keys, std::span<const QuerySegment> segments, TransposedLists& lists) {
  KeyTile tile;
  tile.k_begin = static_cast<std::int32_t>(keys.begin);
  tile.k_end = static_cast<std::int32_t>(keys.end);
  tile.segments_begin = static_cast<std::int32_t>(lists.segments.size());
  tile.segments = static_cast<std::int32_t>(segments.size());
  for (const QuerySegment& segment : segments) tile.q_tiles += segment.count;
  if (!segments.empty()) {
    tile.q_begin = segments.back().q_tile;
    tile.q_end = segments.front().q_tile + segments.front().count;
  }
  lists.tiles.push_back(tile);
  lists.segments.insert(lists.segments.end(), segments.begin(), segments.end());
}

/// Adds the key tiles between `bounds`, each for all lists in turn, as these mostly have the same
/// patterns: list l of tile i becomes tiles[i · lists + l].
void add_key_tiles(std::span<const std::shared_ptr<const HeadView>> views,
                   std::span<const std::int64_t> bounds, int tile_keys, TransposedLists& lists) {
  SeenRows seen_rows(lists.tile_tokens(), tile_keys, lists.patterns);
  std::vector<SegmentFinder> finders;
  finders.reserve(views.size());
  for (const auto& view : views)
    finders.emplace_back(view, lists.tile_tokens(), tile_keys, seen_rows);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Range keys = {bounds[i], bounds[i + 1]};
    for (SegmentFinder& finder : finders) add_tile(keys, finder.find(keys), lists);
  }
}

/// Key tiles per list that one thread makes at a time.
constexpr std::int64_t kKeyTilesPerPart = 8;

/// Makes the tiles of all lists in parts by several threads, and puts them together.
class Parts {
 public:
  Parts(std::vector<std::shared_ptr<const HeadView>> views, std::span<const std::int64_t> bounds,
        int tile_keys, TransposedLists& lists)
      : views_(std::move(views)),
        bounds_(bounds),
        tile_keys_(tile_keys),
        lists_(lists),
        parts_(static_cast<std::size_t>(ceil_div(lists.tiles_per_list, kKeyTilesPerPart))) {}

  std::int64_t count() const { return std::ssize(parts_); }

  void make(std::int64_t part) {
    const auto first = static_cast<std::size_t>(part * kKeyTilesPerPart);
    const std::size_t tiles =
        std::min(static_cast<std::size_t>(kKeyTilesPerPart), bounds_.size() - 1 - first);
    TransposedLists& made = parts_[static_cast<std::size_t>(part)];
    made.pack = lists_.pack;
    add_key_tiles(views_, bounds_.subspan(first, tiles + 1), tile_keys_, made);
  }

  /// Once all parts are made: copies tiles, lists first, assigns places to segments, and merges the
  /// patterns.
  void place() {
    lists_.tiles.resize(static_cast<std::size_t>(lists_.tiles_per_list) * views_.size());
    for (std::int64_t part = 0; part < count(); ++part) {
      const auto& tiles = parts_[static_cast<std::size_t>(part)].tiles;
      for (std::size_t i = 0; i < tiles.size(); ++i) lists_.tiles[tile_of(part, i)] = tiles[i];
    }
    std::int64_t segments = 0;
    for (KeyTile& tile : lists_.tiles) {
      tile.segments_begin = static_cast<std::int32_t>(segments);
      segments += tile.segments;
    }
    check_segments(segments);
    lists_.segments.resize(static_cast<std::size_t>(segments));
    UniquePatterns patterns(lists_.patterns);
    for (TransposedLists& part : parts_) {
      places_.push_back(patterns.add(part.patterns));
      part.patterns = {};
    }
  }

  void write_segments(std::int64_t index) {
    TransposedLists& part = parts_[static_cast<std::size_t>(index)];
    const std::vector<std::int32_t>& places = places_[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < part.tiles.size(); ++i) {
      const auto from = part.segments.begin() + part.tiles[i].segments_begin;
      std::transform(from, from + part.tiles[i].segments,
                     lists_.segments.begin() + lists_.tiles[tile_of(index, i)].segments_begin,
                     [&](QuerySegment segment) {
                       const auto pattern = static_cast<std::size_t>(segment.pattern);
                       if (segment.pattern >= 0) segment.pattern = places[pattern];
                       return segment;
                     });
    }
    part = {};
  }

 private:
  /// The place, in lists_, of tile i of a part (whose order add_key_tiles gives).
  std::size_t tile_of(std::int64_t part, std::size_t i) const {
    const auto first = static_cast<std::size_t>(part * kKeyTilesPerPart);
    return i % views_.size() * static_cast<std::size_t>(lists_.tiles_per_list) + first +
           i / views_.size();
  }

  std::vector<std::shared_ptr<const HeadView>> views_;
  std::span<const std::int64_t> bounds_;
  int tile_keys_;
  TransposedLists& lists_;
  std::vector<TransposedLists> parts_;
  std::vector<std::vector<std::int32_t>> places_;  ///< of the patterns of each part, in lists_
};

/// Block lists are long: all threads make them, in parts that do not depend on the number of
/// threads, so that neither do the lists.
void add_parts(const Mask& mask, std::span<const std::int64_t> bounds, int tile_keys,
               TransposedLists& lists) {
  std::vector<std::shared_ptr<const HeadView>> views(static_cast<std::size_t>(mask.heads()));
  ThreadPool& pool = ThreadPool::global();
  pool.parallel_for(std::ssize(views), [&](std::int64_t list, int) {
    views[static_cast<std::size_t>(list)] =
        std::make_shared<const HeadView>(HeadView::transposed(mask, static_cast<int>(list)));
  });
  Parts parts(std::move(views), bounds, tile_keys, lists);
  pool.parallel_for(parts.count(), [&](std::int64_t i, int) { parts.make(i); });
  parts.place();
  pool.parallel_for(parts.count(), [&](std::int64_t i, int) { parts.write_segments(i); });
}

/// Says of each pattern which half of the keys it shows, if it is one, unless few visits have such:
/// the kernel that takes them is slower at the others. Under block lists the two halves have visits
/// of their own in turn; elsewhere mostly one of them has, and gains less.
void tell_halves(const cost::SliceBackwardCycles& rates, TransposedLists& lists) {
  constexpr int kHalf = kTileKeys / 2;
  const auto patterns = static_cast<std::int64_t>(lists.patterns.size()) / kTileKeys;
  LONGCA_CHECK(patterns < 1 << kSeenHalfShift, "{} patterns: the limit is {}", patterns,
               1 << kSeenHalfShift);
  std::vector<std::int32_t> told;
  told.reserve(static_cast<std::size_t>(patterns));
  for (std::int32_t i = 0; i < patterns; ++i) {
    const std::span words =
        std::span(lists.patterns).subspan(static_cast<std::size_t>(i) * kTileKeys, kTileKeys);
    const auto all = [&](int half, std::uint64_t word) {
      return std::ranges::all_of(words.subspan(static_cast<std::size_t>(half) * kHalf, kHalf),
                                 [&](std::uint64_t seen) { return seen == word; });
    };
    std::int32_t pattern = i;
    for (int half = 0; half < 2; ++half) {
      if (!all(1 - half, 0)) continue;
      pattern = all(half, ~std::uint64_t{0}) ? kFirstHalf - half : i | (half + 1) << kSeenHalfShift;
    }
    told.push_back(pattern);
  }
  std::int64_t visits = 0;
  std::int64_t of_halves = 0;
  for (const QuerySegment& segment : lists.segments) {
    visits += segment.count;
    if (segment.pattern < 0) continue;
    if (seen_halves(told[static_cast<std::size_t>(segment.pattern)]) != 3) {
      of_halves += segment.count;
    }
  }
  const std::int64_t visits_per_half =
      lists.of_blocks ? rates.block_visits_per_half : rates.visits_per_half;
  lists.tells_halves = of_halves * visits_per_half > visits;
  if (!lists.tells_halves) return;
  for (QuerySegment& segment : lists.segments) {
    if (segment.pattern >= 0) segment.pattern = told[static_cast<std::size_t>(segment.pattern)];
  }
}

/// Puts the segments of each window of query tiles in the order of block_tile.h: first what sees
/// both halves, then the first half and the second one in turn, as many query tiles of each.
class WindowSorter {
 public:
  explicit WindowSorter(std::int64_t window) : window_(window) {}

  /// Appends the segments of a key tile in that order.
  void append(std::span<const QuerySegment> segments, std::vector<QuerySegment>& out) {
    std::int64_t window = -1;
    for (QuerySegment rest : segments) {
      while (rest.count > 0) {
        const std::int64_t here = (rest.q_tile + rest.count - 1) / window_;
        if (here != window) flush(out);
        window = here;
        QuerySegment part = rest;
        part.q_tile =
            static_cast<std::int32_t>(std::max<std::int64_t>(rest.q_tile, here * window_));
        part.count = rest.q_tile + rest.count - part.q_tile;
        rest.count -= part.count;
        const int seen = seen_halves(part.pattern);
        seen == 3 ? out.push_back(part) : halves_[seen - 1].push_back(part);
      }
    }
    flush(out);
  }

 private:
  void flush(std::vector<QuerySegment>& out) {
    std::size_t next[2] = {0, 0};
    const auto take = [&](int half, std::int32_t count) {
      QuerySegment& from = halves_[half][next[half]];
      QuerySegment part = from;
      part.q_tile += from.count - count;
      part.count = count;
      from.count -= count;
      next[half] += from.count == 0;
      out.push_back(part);
    };
    const auto left = [&](int half) { return next[half] < halves_[half].size(); };
    while (left(0) && left(1)) {
      const std::int32_t count = std::min(halves_[0][next[0]].count, halves_[1][next[1]].count);
      take(0, count);
      take(1, count);
    }
    for (int half = 0; half < 2; ++half) {
      while (left(half)) take(half, halves_[half][next[half]].count);
      halves_[half].clear();
    }
  }

  std::int64_t window_;
  std::vector<QuerySegment> halves_[2];  ///< of the window, still to be written
};

void sort_windows(std::int64_t window, TransposedLists& lists) {
  std::vector<QuerySegment> sorted;
  sorted.reserve(lists.segments.size());
  WindowSorter sorter(window);
  for (KeyTile& tile : lists.tiles) {
    const auto begin = static_cast<std::int32_t>(sorted.size());
    sorter.append(lists.segments_of(tile), sorted);
    tile.segments_begin = begin;
    tile.segments = static_cast<std::int32_t>(sorted.size()) - begin;
  }
  lists.segments.swap(sorted);
}

}  // namespace

TransposedLists make_transposed_lists(const Mask& mask, int pack, const BackwardWork& work) {
  LONGCA_CHECK(pack == 1 || pack == 2 || pack == 4 || pack == 8, "a pack of {} heads", pack);
  LONGCA_CHECK(work.heads_q % work.heads_k == 0 && work.heads_q / work.heads_k % pack == 0,
               "a pack of {} of {} query heads on {} KV heads", pack, work.heads_q, work.heads_k);
  LONGCA_CHECK(mask.heads() == 1 || mask.heads() % work.heads_k == 0,
               "{} block lists for {} KV heads", mask.heads(), work.heads_k);
  LONGCA_CHECK(work.tile_keys == kSubTileKeys || work.tile_keys == kTileKeys,
               "key tiles of {} keys", work.tile_keys);
  LONGCA_CHECK(!work.tells_halves || work.tile_keys == kTileKeys, "halves of {} keys",
               work.tile_keys);
  TransposedLists lists;
  lists.pack = pack;
  lists.list_heads = mask.heads();
  lists.of_blocks = mask.blocks() != nullptr;
  const std::vector<std::int64_t> bounds = key_bounds(mask, pack, work);
  lists.tiles_per_list = static_cast<std::int64_t>(bounds.size()) - 1;
  if (lists.of_blocks) {
    add_parts(mask, bounds, work.tile_keys, lists);
  } else {
    const std::shared_ptr<const HeadView> view =
        std::make_shared<const HeadView>(HeadView::transposed(mask, 0));
    add_key_tiles(std::span(&view, 1), bounds, work.tile_keys, lists);
  }
  check_segments(std::ssize(lists.segments));
  if (work.tells_halves) tell_halves(work.platform.slice.backward, lists);
  order_work(work, lists);
  if (work.ordered) number_additions(mask.q_tokens(), lists);
  if (lists.tells_halves && lists.of_blocks) sort_windows(window_tiles(work, pack), lists);
  order_writes(mask.q_tokens(), work, lists);
  check_segments(std::ssize(lists.segments));
  return lists;
}

}  // namespace longca::slice
