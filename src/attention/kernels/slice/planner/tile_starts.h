#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

/// A query tile with the first entries of its lists: a warp reads a word per lane, and knows what
/// to load. Else it reads the tile, then what that says: two reads, of which the second waits for
/// the first, and those of a CTA's first work tile are in no cache.
struct TileStart {
  static constexpr int kPartial = 6;

  std::int32_t row_begin, row_end, partial_begin, partial_count, runs_begin, full_tiles;
  FullRun run;                    ///< the first, if there are full tiles
  PartialTile partial[kPartial];  ///< all, if there are no more of them
};
static_assert(sizeof(TileStart) == 32 * sizeof(std::int32_t));

/// With more query tiles the starts would take a plan milliseconds, and calls last many more.
inline constexpr std::size_t kMaxTileStarts = 16384;

/// Of all tiles, those of a list in its order; none where there are more than kMaxTileStarts.
std::vector<TileStart> make_tile_starts(const TileLists& lists);

}  // namespace longca::slice
