#include "attention/kernels/slice/planner/dq_order.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/work_order.h"
#include "core/rounding.h"

namespace longca::slice {
namespace {

/// How often query tiles have been visited, as runs of equal numbers: key tiles visit long ranges,
/// in which few numbers differ.
class VisitRuns {
 public:
  explicit VisitRuns(std::int64_t q_tiles)
      : end_(static_cast<std::int32_t>(q_tiles)),
        begins_(static_cast<std::size_t>(q_tiles) / 64 + 1),
        visits_(static_cast<std::size_t>(q_tiles)) {
    begins_[0] = 1;
  }

  /// Visits query tiles [begin, end). Calls run(begin, end, visits before) for each run, the last
  /// one first.
  template <typename Run>
  void visit(std::int32_t begin, std::int32_t end, const Run& run) {
    split(begin);
    split(end);
    for (std::int32_t next = end; next > begin;) {
      const std::int32_t first = begin_of(next - 1);
      run(first, next, visits_[static_cast<std::size_t>(first)]++);
      next = first;
    }
    join(begin);
    join(end);
  }

 private:
  /// Where the run of a query tile begins.
  std::int32_t begin_of(std::int32_t tile) const {
    auto word = static_cast<std::size_t>(tile) / 64;
    std::uint64_t bits = begins_[word] << (63 - tile % 64);
    if (bits != 0) return tile - std::countl_zero(bits);
    do bits = begins_[--word];
    while (bits == 0);
    return static_cast<std::int32_t>(word) * 64 + 63 - std::countl_zero(bits);
  }
  bool begins(std::int32_t tile) const {
    return (begins_[static_cast<std::size_t>(tile) / 64] >> tile % 64 & 1) != 0;
  }
  void flip(std::int32_t tile) {
    begins_[static_cast<std::size_t>(tile) / 64] ^= std::uint64_t{1} << tile % 64;
  }
  std::int32_t visits_of_run(std::int32_t tile) const {
    return visits_[static_cast<std::size_t>(begin_of(tile))];
  }
  void split(std::int32_t tile) {
    if (tile == end_ || begins(tile)) return;
    visits_[static_cast<std::size_t>(tile)] = visits_of_run(tile);
    flip(tile);
  }
  void join(std::int32_t tile) {
    if (tile == 0 || tile == end_) return;
    if (visits_of_run(tile - 1) == visits_[static_cast<std::size_t>(tile)]) flip(tile);
  }

  std::int32_t end_;
  std::vector<std::uint64_t> begins_;  ///< a bit per query tile: a run begins there
  std::vector<std::int32_t> visits_;   ///< where one does: the visits of its query tiles
};

/// Numbers the additions of one list.
class AdditionNumbers {
 public:
  AdditionNumbers(const TransposedLists& lists, std::size_t list, std::int64_t q_tiles)
      : lists_(lists),
        tiles_(std::span(lists.tiles)
                   .subspan(list * static_cast<std::size_t>(lists.tiles_per_list),
                            static_cast<std::size_t>(lists.tiles_per_list))),
        visits_(q_tiles) {}

  /// Takes the next item of the order; false if it visits nothing.
  bool take(const WorkItem& item) {
    const KeyTile& tile = tiles_[static_cast<std::size_t>(item.tile)];
    const std::span<const QuerySegment> segments = lists_.segments_of(tile);
    const std::size_t begin = numbered_.size();
    auto next = std::ranges::partition_point(
        segments, [&](const QuerySegment& segment) { return segment.q_tile >= item.q_end; });
    for (; next != segments.end() && next->q_tile + next->count > item.q_begin; ++next) {
      visits_.visit(std::max(next->q_tile, item.q_begin),
                    std::min(next->q_tile + next->count, item.q_end),
                    [&](std::int32_t first, std::int32_t end, std::int32_t prior_adds) {
                      numbered_.push_back({first, end - first, next->pattern, prior_adds});
                    });
    }
    parts_.push_back({item.tile, item.q_begin, begin, numbered_.size()});
    return numbered_.size() > begin;
  }

  /// Appends the numbered segments, tile by tile, and tells the tiles where theirs are.
  void write(std::span<KeyTile> tiles, std::vector<QuerySegment>& out) {
    std::ranges::stable_sort(parts_, [](const Part& a, const Part& b) {
      return a.tile != b.tile ? a.tile < b.tile : a.q_begin > b.q_begin;
    });
    for (std::size_t i = 0; i < parts_.size();) {
      KeyTile& tile = tiles[static_cast<std::size_t>(parts_[i].tile)];
      tile.segments_begin = static_cast<std::int32_t>(out.size());
      for (const std::int32_t id = parts_[i].tile; i < parts_.size() && parts_[i].tile == id; ++i) {
        out.insert(out.end(), numbered_.begin() + static_cast<std::ptrdiff_t>(parts_[i].begin),
                   numbered_.begin() + static_cast<std::ptrdiff_t>(parts_[i].end));
      }
      tile.segments = static_cast<std::int32_t>(out.size()) - tile.segments_begin;
    }
  }

 private:
  /// The segments of an item: numbered_[begin … end).
  struct Part {
    std::int32_t tile, q_begin;
    std::size_t begin, end;
  };

  const TransposedLists& lists_;
  std::span<const KeyTile> tiles_;
  VisitRuns visits_;  ///< by the items taken
  std::vector<QuerySegment> numbered_;
  std::vector<Part> parts_;
};

/// Visits of the query tiles of one head block; under a static mask those of all head blocks are
/// visited alike.
struct TileVisits {
  std::vector<std::int32_t> visits;
  std::vector<std::int32_t> last;  ///< index in the order of the last item that visits it, or −1
};

TileVisits count_visits(std::int64_t q_tiles, const TransposedLists& lists) {
  TileVisits tiles;
  std::vector<std::int32_t> change(static_cast<std::size_t>(q_tiles) + 1, 0);
  for (const QuerySegment& segment : lists.segments) {
    ++change[static_cast<std::size_t>(segment.q_tile)];
    --change[static_cast<std::size_t>(segment.q_tile) + static_cast<std::size_t>(segment.count)];
  }
  change.pop_back();
  tiles.visits.resize(change.size());
  std::partial_sum(change.begin(), change.end(), tiles.visits.begin());
  tiles.last.assign(change.size(), -1);
  for (std::size_t i = 0; i < lists.order.size(); ++i) {
    const WorkItem& item = lists.order[i];
    const KeyTile& tile = lists.tiles[static_cast<std::size_t>(item.tile)];
    const std::int32_t begin = std::max(item.q_begin, tile.q_begin);
    const std::int32_t end = std::min(item.q_end, tile.q_end);
    if (begin < end) {
      std::fill(tiles.last.begin() + begin, tiles.last.begin() + end, static_cast<std::int32_t>(i));
    }
  }
  return tiles;
}

}  // namespace

void number_additions(std::int64_t q_tokens, TransposedLists& lists) {
  const auto tiles = static_cast<std::size_t>(lists.tiles_per_list);
  const auto items = static_cast<std::size_t>(lists.items_per_order);
  if (items == 0) return;
  const std::size_t orders = lists.order.size() / items;
  const std::size_t lists_per_order = static_cast<std::size_t>(lists.list_heads) / orders;
  const std::int64_t q_tiles = ceil_div(q_tokens, lists.tile_tokens());
  if (!lists.split_keys.empty()) lists.prior_parts.resize(lists.order.size());
  std::vector<QuerySegment> numbered;
  numbered.reserve(lists.segments.size());
  for (std::size_t order = 0; order < orders; ++order) {
    std::vector<bool> visits(items);  // whether an item has query tiles in one of the lists
    for (std::size_t i = 0; i < lists_per_order; ++i) {
      const std::size_t list = order * lists_per_order + i;
      AdditionNumbers numbers(lists, list, q_tiles);
      for (std::size_t item = 0; item < items; ++item) {
        if (numbers.take(lists.order[order * items + item])) visits[item] = true;
      }
      numbers.write(std::span(lists.tiles).subspan(list * tiles, tiles), numbered);
    }
    if (lists.prior_parts.empty()) continue;
    std::vector<std::int32_t> parts(tiles);
    for (std::size_t item = 0; item < items; ++item) {
      const std::size_t place = order * items + item;
      std::int32_t& taken = parts[static_cast<std::size_t>(lists.order[place].tile)];
      lists.prior_parts[place] = taken;
      taken += visits[item] ? 1 : 0;
    }
  }
  lists.segments.swap(numbered);
}

void order_writes(std::int64_t q_tokens, const BackwardWork& work, TransposedLists& lists) {
  if (lists.of_blocks || has_many_items(work, lists.items_per_order)) return;
  const std::int64_t q_tiles = ceil_div(q_tokens, lists.tile_tokens());
  const std::int64_t head_blocks = work.heads_q / work.heads_k / lists.pack;
  const std::int64_t all = q_tiles * head_blocks * work.heads_k;
  if (all <= work.platform.slice.backward.max_unordered_write_tiles) return;
  const TileVisits tiles = count_visits(q_tiles, lists);
  const auto regions = static_cast<std::size_t>(ceil_div(all, kRegionTiles));
  lists.region_visits.assign(regions, 0);
  std::vector<std::int64_t> ends(regions, -1);  // the last item that visits it, over all sections
  for (std::int64_t index = 0; index < all; ++index) {
    const auto tile = static_cast<std::size_t>(index % q_tiles);
    const auto region = static_cast<std::size_t>(index / kRegionTiles);
    lists.region_visits[region] += tiles.visits[tile];
    const std::int64_t section = index / q_tiles / head_blocks / lists.section_heads;
    ends[region] = std::max(ends[region], section * lists.items_per_order + tiles.last[tile]);
  }
  lists.region_order.resize(regions);
  // Of regions with equal ends the last comes first, as rows are visited from the last to the
  // first.
  std::iota(lists.region_order.rbegin(), lists.region_order.rend(), 0);
  std::ranges::stable_sort(lists.region_order, {}, [&](std::int32_t region) {
    return ends[static_cast<std::size_t>(region)];
  });
}

}  // namespace longca::slice
