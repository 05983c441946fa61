#include "attention/kernels/slice/planner/dq_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "attention/kernels/slice/planner/work_order.h"

namespace longca::slice {
namespace {

/// Appends `segment` to `out`, cut into runs of equal prior_adds, the last query tiles first, and
/// counts the visits.
void append_numbered(const QuerySegment& segment, std::vector<std::int32_t>& visits,
                     std::vector<QuerySegment>& out) {
  std::int32_t end = segment.q_tile + segment.count;
  while (end > segment.q_tile) {
    const std::int32_t prior_adds = visits[static_cast<std::size_t>(end - 1)];
    std::int32_t begin = end;
    while (begin > segment.q_tile && visits[static_cast<std::size_t>(begin - 1)] == prior_adds) {
      ++visits[static_cast<std::size_t>(--begin)];
    }
    out.push_back({begin, end - begin, segment.pattern, prior_adds});
    end = begin;
  }
}

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
    --change[static_cast<std::size_t>(segment.q_tile + segment.count)];
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
  const auto count = static_cast<std::size_t>(lists.tiles_per_list);
  if (count == 0) return;
  const auto lists_per_order =
      static_cast<std::size_t>(lists.list_heads) / (lists.order.size() / count);
  const std::int64_t q_tiles = (q_tokens + lists.tile_tokens() - 1) / lists.tile_tokens();
  std::vector<std::int32_t> visits;
  std::vector<QuerySegment> numbered;
  numbered.reserve(lists.segments.size());
  for (std::size_t list = 0; list < static_cast<std::size_t>(lists.list_heads); ++list) {
    visits.assign(static_cast<std::size_t>(q_tiles), 0);
    for (std::size_t place = 0; place < count; ++place) {
      const std::int32_t next = lists.order[list / lists_per_order * count + place].tile;
      KeyTile& tile = lists.tiles[list * count + static_cast<std::size_t>(next)];
      const auto begin = static_cast<std::int32_t>(numbered.size());
      for (std::int32_t i = 0; i < tile.segments; ++i) {
        append_numbered(lists.segments[static_cast<std::size_t>(tile.segments_begin + i)], visits,
                        numbered);
      }
      tile.segments_begin = begin;
      tile.segments = static_cast<std::int32_t>(numbered.size()) - begin;
    }
  }
  lists.segments.swap(numbered);
}

void order_writes(std::int64_t q_tokens, const BackwardWork& work, TransposedLists& lists) {
  if (lists.of_blocks || has_many_items(work, lists.items_per_order)) return;
  const std::int64_t q_tiles = (q_tokens + lists.tile_tokens() - 1) / lists.tile_tokens();
  const std::int64_t head_blocks = work.heads_q / work.heads_k / lists.pack;
  const std::int64_t all = q_tiles * head_blocks * work.heads_k;
  if (all <= work.platform.slice.backward.max_unordered_write_tiles) return;
  const TileVisits tiles = count_visits(q_tiles, lists);
  const auto regions = static_cast<std::size_t>((all + kRegionTiles - 1) / kRegionTiles);
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
