#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Consecutive tiles of one tile row that are all full or all partial; empty ones are not listed.
struct TileRun {
  std::int32_t begin = 0;  ///< first tile column
  std::int32_t end = 0;    ///< one past the last
  TileClass tile_class = TileClass::full;
  bool operator==(const TileRun&) const = default;
};

/// The non-empty tiles of a mask's head, row by row, as runs: what a blocked kernel walks.
struct TileRuns {
  std::int64_t tile_m = 0;  ///< queries of a tile
  std::int64_t tile_n = 0;  ///< keys of a tile
  /// CSR: the runs of tile row i, ascending, are runs[offsets[i] … offsets[i + 1]).
  std::vector<std::int64_t> offsets;
  std::vector<TileRun> runs;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const TileRun> row(std::int64_t i) const;
  /// Number of tiles listed.
  std::int64_t tiles() const;
};

/// Tiles of `tile_m` × `tile_n` over [0, q_tokens) × [0, k_tokens), the last ones cut: a cut tile
/// whose cells are all allowed is full. O(slices + runs), without visiting cells.
TileRuns tile_runs(const Mask& mask, int head, std::int64_t tile_m, std::int64_t tile_n);

/// The same by columns: row i of the result is key tile i, its runs count query tiles. For backward
/// passes that own key tiles.
TileRuns transposed_tile_runs(const Mask& mask, int head, std::int64_t tile_m, std::int64_t tile_n);

}  // namespace longca
