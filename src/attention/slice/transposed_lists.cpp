#include "attention/slice/transposed_lists.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "attention/slice/addition_order.h"
#include "attention/slice/key_bounds.h"
#include "attention/slice/seen_rows.h"
#include "attention/slice/tile_bands.h"
#include "attention/slice/work_order.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca::slice {
namespace {

/// Walks the key tiles of one list and finds the query tiles that see them.
class SegmentFinder {
 public:
  SegmentFinder(std::shared_ptr<const HeadView> view, TransposedLists& out)
      : queries_(view->columns),
        step_(out.tile_tokens()),
        source_(std::move(view)),
        seen_rows_(out.tile_tokens(), out.patterns) {}

  /// Of `keys`, the last query tiles first; later calls ask for later keys.
  std::span<const QuerySegment> find(Range keys) {
    segments_.clear();
    first_band_ = 0;
    keys_ = keys;
    bands_ = source_.advance(keys);
    find_ranges();
    std::int64_t done = 0;
    std::size_t common = 0;
    for (const Range& seen : seen_) {
      std::int64_t tile = std::max(seen.begin / step_, done);
      done = (seen.end + step_ - 1) / step_;
      while (tile < done) tile += add_from(tile, done, common);
    }
    std::reverse(segments_.begin(), segments_.end());
    return segments_;
  }

 private:
  struct Edge {
    std::int64_t query;
    std::int64_t keys;  ///< that begin (or, negative, end) to be seen from here on
  };

  /// What some key is seen by, and what all are: bands that share a query between their keys count
  /// as far as whole bands go, what is left is found cell by cell.
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
      if (seen == kTileKeys && edges_[i].query < edges_[i + 1].query) {
        common_.push_back({edges_[i].query, edges_[i + 1].query});
      }
    }
    join_ranges(common_);
  }

  /// Adds a run of tiles that see everything, or one tile; returns how many tiles that is.
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
    // A key tile that block lists cut has as many bands as they have blocks.
    while (first_band_ < bands_.size() && bands_[first_band_].k.end <= token) ++first_band_;
    const std::int32_t pattern = seen_rows_.pattern(bands_.subspan(first_band_), keys_, queries);
    if (pattern != kNone) add(tile, 1, pattern);
    return 1;
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
  TileBands source_;
  SeenRows seen_rows_;
  Range keys_;
  std::span<const Band> bands_;
  std::size_t first_band_ = 0;  ///< none before reaches the query tile at hand
  std::vector<Range> seen_;
  std::vector<Range> common_;
  std::vector<Edge> edges_;
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

/// The key tiles between `bounds`.
void add_tiles(std::shared_ptr<const HeadView> view, std::span<const std::int64_t> bounds,
               TransposedLists& lists) {
  SegmentFinder finder(std::move(view), lists);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Range keys = {bounds[i], bounds[i + 1]};
    add_tile(keys, finder.find(keys), lists);
  }
}

/// Appends a part, whose indices count from 0.
void append(TransposedLists& lists, const TransposedLists& part) {
  const auto segments = static_cast<std::int32_t>(lists.segments.size());
  const auto patterns = static_cast<std::int32_t>(lists.patterns.size() / kTileKeys);
  for (KeyTile tile : part.tiles) {
    tile.segments_begin += segments;
    lists.tiles.push_back(tile);
  }
  for (QuerySegment segment : part.segments) {
    segment.pattern += segment.pattern < 0 ? 0 : patterns;
    lists.segments.push_back(segment);
  }
  lists.patterns.insert(lists.patterns.end(), part.patterns.begin(), part.patterns.end());
}

/// Key tiles of a mask with block lists that one thread makes at a time.
constexpr std::int64_t kTilesPerPart = 64;

/// Block lists name so many queries that all threads are wanted. The parts are the same for any
/// number of them.
void add_parts(const Mask& mask, std::span<const std::int64_t> bounds, TransposedLists& lists) {
  const std::int64_t parts_per_list = (lists.tiles_per_list + kTilesPerPart - 1) / kTilesPerPart;
  std::vector<std::shared_ptr<const HeadView>> views(static_cast<std::size_t>(mask.heads()));
  std::vector<TransposedLists> parts(static_cast<std::size_t>(parts_per_list * mask.heads()));
  ThreadPool& pool = ThreadPool::global();
  pool.parallel_for(std::ssize(views), [&](std::int64_t list, int) {
    views[static_cast<std::size_t>(list)] =
        std::make_shared<const HeadView>(HeadView::transposed(mask, static_cast<int>(list)));
  });
  pool.parallel_for(std::ssize(parts), [&](std::int64_t i, int) {
    TransposedLists& part = parts[static_cast<std::size_t>(i)];
    part.pack = lists.pack;
    const std::int64_t first = i % parts_per_list * kTilesPerPart;
    const std::int64_t count = std::min(kTilesPerPart, lists.tiles_per_list - first) + 1;
    add_tiles(views[static_cast<std::size_t>(i / parts_per_list)],
              bounds.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
              part);
  });
  for (TransposedLists& part : parts) {
    append(lists, part);
    part = {};
  }
}

}  // namespace

TransposedLists make_transposed_lists(const Mask& mask, int pack, const BackwardWork& work) {
  LONGCA_CHECK(pack == 1 || pack == 2 || pack == 4 || pack == 8, "a pack of {} heads", pack);
  LONGCA_CHECK(work.heads_q % work.heads_k == 0 && work.heads_q / work.heads_k % pack == 0,
               "a pack of {} of {} query heads on {} KV heads", pack, work.heads_q, work.heads_k);
  LONGCA_CHECK(mask.heads() == 1 || mask.heads() % work.heads_k == 0,
               "{} block lists for {} KV heads", mask.heads(), work.heads_k);
  TransposedLists lists;
  lists.pack = pack;
  lists.list_heads = mask.heads();
  lists.of_blocks = mask.blocks() != nullptr;
  const std::vector<std::int64_t> bounds = key_bounds(mask);
  lists.tiles_per_list = static_cast<std::int64_t>(bounds.size()) - 1;
  if (lists.of_blocks) {
    add_parts(mask, bounds, lists);
  } else {
    add_tiles(std::make_shared<const HeadView>(HeadView::transposed(mask, 0)), bounds, lists);
  }
  order_work(work, lists);
  if (work.ordered) rank_additions(mask.q_tokens(), lists);
  return lists;
}

}  // namespace longca::slice
