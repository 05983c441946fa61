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
  /// Its masks in HeadTiles::bits: those of the tile's group g are masks[first + g · step], 8 words
  /// each. −1: every row sees every key.
  std::int32_t first_mask = -1;
  std::int32_t mask_step = 0;  ///< 0 where all rows of the tile see the same keys
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
  /// Masks of 8 words: bit j of word i says whether row i of the group sees key j of the panel.
  /// Keys past the end have 0; rows past the end of a tile may have anything.
  std::vector<std::uint32_t> bits;

  std::span<const PanelRef> panels_of(const QueryTile& tile) const {
    return {panels.data() + tile.first, panels.data() + tile.last};
  }
  /// The mask of a group of the tile's rows, or null if they see the whole panel.
  const std::uint32_t* bits_of(const PanelRef& ref, int group) const {
    if (ref.first_mask < 0) return nullptr;
    return bits.data() + (std::int64_t{ref.first_mask} + group * ref.mask_step) * kGroupRows;
  }
  std::int64_t bytes() const;
};

/// Which panels of keys every tile of queries sees: what the blocked kernels walk. Tiles are cut at
/// `row_bounds` (ascending, from 0 to the number of queries) and wherever one would pass kTileRows.
HeadTiles plan_tiles(const Mask& mask, int head, std::span<const std::int64_t> row_bounds);

}  // namespace longca::cpu
