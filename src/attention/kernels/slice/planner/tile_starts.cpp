#include "attention/kernels/slice/planner/tile_starts.h"

#include <algorithm>
#include <cstddef>

namespace longca::slice {

std::vector<TileStart> make_tile_starts(const TileLists& lists) {
  std::vector<TileStart> starts;
  if (lists.order.size() > kMaxTileStarts) return starts;
  starts.reserve(lists.order.size());
  for (std::size_t i = 0; i < lists.order.size(); ++i) {
    const std::int64_t list = static_cast<std::int64_t>(i) / lists.tiles_per_list;
    const QueryTile& tile =
        lists.tiles[static_cast<std::size_t>(list * lists.tiles_per_list + lists.order[i])];
    TileStart start = {tile.row_begin,
                       tile.row_end,
                       tile.partial_begin,
                       tile.partial_count,
                       tile.runs_begin,
                       tile.full_tiles,
                       {},
                       {}};
    if (tile.full_tiles > 0) start.run = lists.runs[static_cast<std::size_t>(tile.runs_begin)];
    std::copy_n(lists.partial.begin() + tile.partial_begin,
                std::min(tile.partial_count, TileStart::kPartial), start.partial);
    starts.push_back(start);
  }
  return starts;
}

}  // namespace longca::slice
