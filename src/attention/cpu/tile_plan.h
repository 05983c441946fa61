#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/cpu/tile_shape.h"
#include "mask/mask.h"

namespace longca::cpu {

/// A panel of keys that a query tile sees.
struct PanelRef {
  std::int32_t panel = 0;  ///< keys [32 · panel, 32 · panel + 32)
  std::int32_t bits = -1;  ///< which mask of HeadTiles::bits; −1: every row sees every key
};

/// The rows of one query tile and the panels that they see.
struct QueryTile {
  Range rows;              ///< at most kTileRows, not empty
  std::int64_t first = 0;  ///< its panels are panels[first, last) of HeadTiles, ascending
  std::int64_t last = 0;
};

/// The tiles of one head of a mask.
struct HeadTiles {
  std::vector<QueryTile> tiles;
  std::vector<PanelRef> panels;
  /// kTileRows words per partial panel: bit j of word i says whether row i of the tile sees key j
  /// of the panel. Rows past the tile's end and keys past the mask's have 0.
  std::vector<std::uint32_t> bits;

  std::span<const PanelRef> panels_of(const QueryTile& tile) const {
    return {panels.data() + tile.first, panels.data() + tile.last};
  }
  /// The masks of the rows of a group, or null if they see the whole panel.
  const std::uint32_t* bits_of(PanelRef ref, int group) const {
    return ref.bits < 0 ? nullptr
                        : bits.data() + std::int64_t{ref.bits} * kTileRows + group * kGroupRows;
  }
  std::int64_t bytes() const;
};

/// Which panels of keys every tile of queries sees: what the blocked kernels walk. Tiles are cut at
/// `row_bounds` (ascending, from 0 to the number of queries) and wherever one would pass kTileRows.
HeadTiles plan_tiles(const Mask& mask, int head, std::span<const std::int64_t> row_bounds);

}  // namespace longca::cpu
