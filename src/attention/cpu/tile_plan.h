#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/cpu/micro_kernels.h"
#include "mask/mask.h"

namespace longca::cpu {

/// A panel of keys that a query tile attends to.
struct PanelRef {
  std::int32_t panel = 0;  ///< keys [32 · panel, 32 · panel + 32)
  /// Index of its masks, of 8 words each, in HeadTiles::bits: group g of the tile has mask
  /// first_mask + g · mask_step. −1 if every row attends to every key.
  std::int32_t first_mask = -1;
  std::int32_t mask_step = 0;  ///< 0 if all rows of the tile have the same keys
};

/// A query tile: its rows, and its panels by index.
struct QueryTile {
  Range rows;              ///< at most kTileRows, not empty
  std::int64_t first = 0;  ///< its panels are panels[first, last) of HeadTiles, ascending
  std::int64_t last = 0;
};

/// The tiles of one head of a mask.
struct HeadTiles {
  std::vector<QueryTile> tiles;
  std::vector<PanelRef> panels;
  /// Masks of 8 words: bit j of word i is set if row i of the group attends to key j of the panel.
  /// 0 for keys past the end; undefined for rows past the end of a tile.
  std::vector<std::uint32_t> bits;

  std::span<const PanelRef> panels_of(const QueryTile& tile) const {
    return {panels.data() + tile.first, panels.data() + tile.last};
  }
  /// The mask of a group of the tile's rows, or null if the panel is full.
  const std::uint32_t* bits_of(const PanelRef& ref, int group) const {
    if (ref.first_mask < 0) return nullptr;
    return bits.data() + (std::int64_t{ref.first_mask} + group * ref.mask_step) * kGroupRows;
  }
  std::int64_t bytes() const;
};

/// Plans the query tiles of one head and their panels. Tiles end at `row_bounds` (ascending, from 0
/// to the number of queries) and after kTileRows rows.
HeadTiles plan_tiles(const Mask& mask, int head, std::span<const std::int64_t> row_bounds);

/// Consecutive keys whose weights are in consecutive columns: the reduction of one product.
struct KeyRun {
  std::int64_t column = 0;
  std::int64_t key = 0;
  std::int64_t keys = 0;
};

/// The panels of one step that a group of 8 query rows attends to, and their runs of keys.
class GroupPanels {
 public:
  /// The columns of a panel in the rows of scores.
  enum class Columns {
    packed,   ///< consecutive; skipped panels take none
    by_chunk  ///< the panel's position in its key chunk
  };
  GroupPanels(const HeadTiles& head, std::span<const PanelRef> panels, int group, Columns columns);

  ScorePanels panels() const { return {panels_.data(), count_}; }
  std::span<const ScorePanel> all() const {
    return {panels_.data(), static_cast<std::size_t>(count_)};
  }
  /// Starts and lengths are even, as bfloat16 pairs need; added keys have weight 0.
  std::span<const KeyRun> runs() const {
    return {runs_.data(), static_cast<std::size_t>(run_count_)};
  }

 private:
  void add_run(const ScorePanel& score_panel, std::uint32_t seen);

  std::array<ScorePanel, kStepPanels> panels_;
  std::array<KeyRun, kStepPanels> runs_;
  int count_ = 0;
  int run_count_ = 0;
};

}  // namespace longca::cpu
