#include "attention/kernels/slice/planner/write_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "attention/kernels/slice/planner/work_order.h"

namespace longca::slice {
namespace {

/// About as many as are written at once: six on each of 132 SMs. Counting visits for
/// fewer took 2 % of a call of 500 rows.
constexpr std::int64_t kFewTiles = 1024;

/// Of the query tiles of a head block: these are the same for all head blocks of a static mask.
struct BlockTiles {
  std::vector<std::int32_t> visits;
  std::vector<std::int32_t> last;  ///< place in the order of the item that comes last; −1: none
};

BlockTiles count_visits(std::int64_t q_tiles, const TransposedLists& lists) {
  BlockTiles tiles;
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

void order_writes(std::int64_t q_tokens, const BackwardWork& work, TransposedLists& lists) {
  if (lists.of_blocks || has_many_items(work, lists.items_per_order)) return;
  const std::int64_t q_tiles = (q_tokens + lists.tile_tokens() - 1) / lists.tile_tokens();
  const std::int64_t head_blocks = work.heads_q / work.heads_k / lists.pack;
  const std::int64_t all = q_tiles * head_blocks * work.heads_k;
  if (all <= kFewTiles) return;
  const BlockTiles tiles = count_visits(q_tiles, lists);
  const auto regions = static_cast<std::size_t>((all + kRegionTiles - 1) / kRegionTiles);
  lists.region_visits.assign(regions, 0);
  std::vector<std::int64_t> ends(regions, -1);  // when work on it does, in items of sections
  for (std::int64_t index = 0; index < all; ++index) {
    const auto tile = static_cast<std::size_t>(index % q_tiles);
    const auto region = static_cast<std::size_t>(index / kRegionTiles);
    lists.region_visits[region] += tiles.visits[tile];
    const std::int64_t section = index / q_tiles / head_blocks / lists.section_heads;
    ends[region] = std::max(ends[region], section * lists.items_per_order + tiles.last[tile]);
  }
  lists.region_order.resize(regions);
  // Rows are walked from the last to the first.
  std::iota(lists.region_order.rbegin(), lists.region_order.rend(), 0);
  std::ranges::stable_sort(lists.region_order, {}, [&](std::int32_t region) {
    return ends[static_cast<std::size_t>(region)];
  });
}

}  // namespace longca::slice
