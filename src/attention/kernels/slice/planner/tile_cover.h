#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "mask/mask_slice.h"

namespace longca::slice {

/// Covers the keys that the rows of a query tile see with as few sub-tiles as possible, as many of
/// them as the order allows seen by every row.
///
/// From left to right, each half starts at the first key that some row sees and no half has: no
/// cover has fewer. Where every row sees the next keys, whole sub-tiles of them are taken as a run.
class TileCover {
 public:
  /// `bands` have at least one cell in each of their rows, which lie in `rows`.
  void cover(Range rows, std::span<const Band> bands);

  /// Halves that every row sees; an even number, so that they make whole tiles.
  std::span<const FullRun> runs() const { return runs_; }
  std::int64_t full_sub_tiles() const { return full_sub_tiles_; }
  /// First keys of the other sub-tiles, ascending but for a full one that is left over, at the end.
  std::span<const std::int64_t> partial() const { return partial_; }

 private:
  struct Edge {
    std::int64_t key;
    std::int64_t rows;  ///< that begin (or, negative, end) to see the keys from here on
  };

  void find_ranges(Range rows, std::span<const Band> bands);
  void place_sub_tiles();
  void leave_even_runs();

  std::vector<Range> seen_;    ///< keys that some row sees
  std::vector<Range> common_;  ///< keys that all do
  std::vector<Edge> edges_;
  std::vector<FullRun> runs_;
  std::vector<std::int64_t> partial_;
  std::int64_t full_sub_tiles_ = 0;
};

}  // namespace longca::slice
