#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"
#include "core/rounding.h"
#include "mask/mask_slice.h"
#include "mask/tiles.h"

namespace longca::slice {

/// Columns of a sub-tile that are loaded for a remainder of `keys` (Joint).
constexpr std::int64_t joint_columns(std::int64_t keys) {
  return round_up(keys, kJointKeys);
}

/// Pairs remainders, the longest first: of those left, the longest is joined with the shortest, or
/// stays alone if `join(longest, shortest)` says that they do not fit. No other way makes more
/// pairs.
template <typename Iterator, typename Join>
void pair_remainders(Iterator begin, Iterator end, const Join& join) {
  for (; begin < end; ++begin) {
    if (begin + 1 < end && join(*begin, *(end - 1))) --end;
  }
}

/// Walks one list of a mask from the first row to the last and cuts its cells to query tiles.
class TileBands {
 public:
  TileBands(const Mask& mask, int list) : TileBands(HeadView::of(mask, list)) {}
  /// In a transposed view rows are keys.
  explicit TileBands(HeadView view)
      : TileBands(std::make_shared<const HeadView>(std::move(view))) {}
  /// Shares the view with other walks.
  explicit TileBands(std::shared_ptr<const HeadView> view);

  /// The cells of `rows` as disjoint bands, sorted by the first key of their rectangles; a band has
  /// a cell in each of its rows. Later calls ask for later rows. Valid until the next call.
  std::span<const Band> advance(Range rows);

 private:
  std::span<const Band> sorted();
  void add_block_row(std::size_t block, Range rows, std::span<const Band* const> bands);

  std::shared_ptr<const HeadView> view_;
  bool solid_;  ///< one band allows every cell: blocks need not be cut by it
  BandSweep sweep_;
  std::vector<Band> bands_;
};

/// Covers the keys that the rows of a query tile see with as few 64-key sub-tiles as possible.
///
/// Greedy, in ascending order of keys: each sub-tile starts at the first key that some row sees and
/// that is not covered, and so no cover has fewer. Where every row sees the next 64 keys or more,
/// as many whole sub-tiles as fit are taken as a full run.
class TileCover {
 public:
  /// `bands` have at least one cell in each of their rows, which lie in `rows`.
  void cover(Range rows, std::span<const Band> bands);

  /// Sub-tiles that every row sees: an even number in all, so that they make whole key tiles.
  std::span<const FullRun> runs() const { return runs_; }
  std::int64_t full_sub_tiles() const { return full_sub_tiles_; }
  /// First keys of the other sub-tiles, ascending; but a full one, left over where the runs had an
  /// odd number, comes last.
  std::span<const std::int64_t> partial() const { return partial_; }
  /// As many of those sub-tiles as are left where remainders are joined (Joint), whoever sees them.
  std::int64_t joined() const;

 private:
  struct Edge {
    std::int64_t key;
    std::int64_t rows;  ///< how many begin to see keys here, or, negative, cease to
  };

  void find_ranges(Range rows, std::span<const Band> bands);
  void place_sub_tiles();
  void leave_even_runs();

  std::vector<Range> seen_;    ///< keys that some row sees
  std::vector<Range> common_;  ///< keys that all do
  std::vector<Edge> edges_;
  std::vector<FullRun> runs_;
  std::vector<std::int64_t> partial_;
  std::vector<std::int64_t> remainders_;  ///< keys of those partial ones that end with a range
  std::int64_t full_sub_tiles_ = 0;
};

}  // namespace longca::slice
