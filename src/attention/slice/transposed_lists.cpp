#include "attention/slice/transposed_lists.h"

#include <algorithm>
#include <span>

#include "attention/slice/addition_order.h"
#include "attention/slice/key_bounds.h"
#include "attention/slice/seen_rows.h"
#include "attention/slice/tile_bands.h"
#include "attention/slice/tile_cost.h"
#include "attention/slice/work_order.h"
#include "core/error.h"

namespace longca::slice {
namespace {

/// What a work group of the sm_90a kernel spends, in cycles, at 128 dimensions: five products of
/// 64 × 128 × 128 take 2560 at least.
constexpr std::int64_t kKeyTileCycles = 5000;  ///< K, V, the first rows, and the results
constexpr std::int64_t kQueryTileCycles = 3400;
/// Shares of a key tile are not made shorter than this many query tiles.
constexpr std::int64_t kLeastShare = 32;

/// Walks the key tiles of one list and finds the query tiles that see them.
class SegmentFinder {
 public:
  SegmentFinder(const Mask& mask, int list, TransposedLists& out)
      : queries_(mask.q_tokens()),
        step_(out.tile_tokens()),
        source_(HeadView::transposed(mask, list)),
        seen_rows_(out.tile_tokens(), out.patterns) {}

  /// Of `keys`, the last query tiles first; later calls ask for later keys.
  std::span<const QuerySegment> find(Range keys) {
    segments_.clear();
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
    const std::int32_t pattern = seen_rows_.pattern(bands_, keys_, queries);
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
  std::vector<Range> seen_;
  std::vector<Range> common_;
  std::vector<Edge> edges_;
  std::vector<QuerySegment> segments_;
};

class ListBuilder {
 public:
  ListBuilder(const Mask& mask, const BackwardWork& work, TransposedLists& out)
      : mask_(mask), work_(work), bounds_(key_bounds(mask)), out_(out) {}

  void build() {
    for (int list = 0; list < mask_.heads(); ++list) {
      SegmentFinder finder(mask_, list, out_);
      for (std::size_t i = 0; i + 1 < bounds_.size(); ++i) {
        add({bounds_[i], bounds_[i + 1]}, finder.find({bounds_[i], bounds_[i + 1]}));
      }
    }
    if (mask_.blocks() == nullptr && !work_.ordered) share_long_tiles();
    out_.tiles_per_list = static_cast<std::int64_t>(out_.tiles.size()) / mask_.heads();
  }

 private:
  /// Head blocks of a KV head, which a work group goes through one after the other.
  std::int64_t head_blocks() const { return work_.heads_q / work_.heads_k / out_.pack; }

  KeyTile key_tile(Range keys) const {
    KeyTile tile;
    tile.k_begin = static_cast<std::int32_t>(keys.begin);
    tile.k_end = static_cast<std::int32_t>(keys.end);
    tile.segments_begin = static_cast<std::int32_t>(out_.segments.size());
    return tile;
  }

  void append(KeyTile& tile, const QuerySegment& segment) {
    out_.segments.push_back(segment);
    tile.q_tiles += segment.count;
    ++tile.segments;
  }

  void finish(std::vector<KeyTile>& tiles, KeyTile& tile) const {
    tile.cost = saturated(kKeyTileCycles + tile.q_tiles * head_blocks() * kQueryTileCycles);
    tiles.push_back(tile);
  }

  void add(Range keys, std::span<const QuerySegment> segments) {
    KeyTile tile = key_tile(keys);
    for (const QuerySegment& segment : segments) append(tile, segment);
    finish(out_.tiles, tile);
  }

  /// Longest first leaves nobody waiting long if no tile takes half of a work group's time.
  void share_long_tiles() {
    std::int64_t sum = 0;
    for (const KeyTile& tile : out_.tiles) sum += tile.q_tiles;
    const std::int64_t most = std::max(sum * work_.heads_k / (2 * std::int64_t{work_.work_groups}),
                                       (kLeastShare + head_blocks() - 1) / head_blocks());
    std::vector<KeyTile> tiles;
    tiles.reserve(out_.tiles.size());
    std::vector<QuerySegment> segments;
    segments.swap(out_.segments);
    for (KeyTile tile : out_.tiles) {
      const auto own = std::span(segments).subspan(static_cast<std::size_t>(tile.segments_begin),
                                                   static_cast<std::size_t>(tile.segments));
      const std::int64_t parts = std::max<std::int64_t>(1, (tile.q_tiles + most - 1) / most);
      share(tile, own, parts, tiles);
    }
    out_.tiles.swap(tiles);
  }

  void share(const KeyTile& whole, std::span<const QuerySegment> segments, std::int64_t parts,
             std::vector<KeyTile>& tiles) {
    std::int32_t shared = -1;
    if (parts > 1) {
      shared = static_cast<std::int32_t>(out_.shared_keys.size());
      out_.shared_keys.push_back({whole.k_begin, whole.k_end});
    }
    std::size_t next = 0;
    std::int32_t taken = 0;  // of the next segment, from its end
    for (std::int64_t part = 0; part < parts; ++part) {
      KeyTile tile = key_tile({whole.k_begin, whole.k_end});
      tile.shared = shared;
      auto left = static_cast<std::int32_t>(whole.q_tiles * (part + 1) / parts -
                                            whole.q_tiles * part / parts);
      while (left > 0) {
        QuerySegment piece = segments[next];
        const std::int32_t rest = piece.count - taken;
        piece.count = std::min(rest, left);
        piece.q_tile += rest - piece.count;
        append(tile, piece);
        left -= piece.count;
        taken += piece.count;
        if (taken == segments[next].count) {
          ++next;
          taken = 0;
        }
      }
      finish(tiles, tile);
    }
  }

  const Mask& mask_;
  const BackwardWork& work_;
  std::vector<std::int64_t> bounds_;
  TransposedLists& out_;
};

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
  ListBuilder(mask, work, lists).build();
  order_work(work, lists);
  if (work.ordered) rank_additions(mask.q_tokens(), lists);
  return lists;
}

}  // namespace longca::slice
