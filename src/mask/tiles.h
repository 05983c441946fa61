#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "mask/mask.h"
#include "mask/mask_slice.h"

namespace longca {

/// One head of a mask, or its transpose, for sweeps by row.
struct HeadView {
  /// Kept column blocks per row block, as in BlockLists but of one head.
  struct Blocks {
    std::vector<std::int64_t> row_bounds;
    std::vector<std::int64_t> column_bounds;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> indices;
  };

  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<Band> bands;  ///< by first row; empty rows trimmed at both ends
  std::optional<Blocks> blocks;

  /// Rows are queries, columns are keys.
  static HeadView of(const Mask& mask, int head);
  /// Rows are keys, columns are queries.
  static HeadView transposed(const Mask& mask, int head);
};

/// Sweeps over rows from top to bottom and keeps the bands that have a cell there.
class BandSweep {
 public:
  explicit BandSweep(std::span<const Band> bands) : bands_(bands) {}

  /// The bands that have a cell in `rows`; successive calls must pass ascending rows.
  std::span<const Band* const> advance(Range rows);

 private:
  std::span<const Band> bands_;
  std::size_t next_ = 0;
  std::vector<const Band*> active_;
};

/// Calls visit(q, keys) for each query of a head, from first to last; `keys` is what
/// Mask::key_intervals(head, q) returns, valid during the call. A sweep over the slices instead of
/// a search per query, unless the mask has block lists.
void for_each_row(const Mask& mask, int head,
                  const std::function<void(std::int64_t q, const std::vector<Range>& keys)>& visit);

/// Consecutive tiles of one tile row, all full or all partial.
struct TileRun {
  std::int32_t begin = 0;  ///< first tile column
  std::int32_t end = 0;    ///< one past the last
  TileClass tile_class = TileClass::full;
  bool operator==(const TileRun&) const = default;
};

/// The non-empty tiles of one head of a mask, run-length encoded by tile row.
struct TileRuns {
  std::int64_t tile_m = 0;  ///< queries of a tile
  std::int64_t tile_n = 0;  ///< keys of a tile
  /// CSR: the runs of tile row i, ascending, are runs[offsets[i] … offsets[i + 1]).
  std::vector<std::int64_t> offsets;
  std::vector<TileRun> runs;

  std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const TileRun> row(std::int64_t i) const;
  /// Number of non-empty tiles.
  std::int64_t tiles() const;
};

/// Tiles of `tile_m` × `tile_n` over [0, q_tokens) × [0, k_tokens), clipped at the end: a clipped
/// tile whose cells are all allowed is full. O(slices + runs).
TileRuns tile_runs(const Mask& mask, int head, std::int64_t tile_m, std::int64_t tile_n);

/// The transpose, for backward passes parallel over keys: row i of the result is key tile i, and
/// its runs are of query tiles.
TileRuns transposed_tile_runs(const Mask& mask, int head, std::int64_t tile_m, std::int64_t tile_n);

}  // namespace longca
