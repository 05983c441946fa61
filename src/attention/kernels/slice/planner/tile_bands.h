#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "mask/tiles.h"

namespace longca::slice {

/// Walks one list of a mask from top to bottom and cuts its cells to query tiles.
class TileBands {
 public:
  TileBands(const Mask& mask, int list) : TileBands(HeadView::of(mask, list)) {}
  /// Of a transposed view, rows are keys.
  explicit TileBands(HeadView view)
      : TileBands(std::make_shared<const HeadView>(std::move(view))) {}
  /// Of a view that others walk too.
  explicit TileBands(std::shared_ptr<const HeadView> view);

  /// The cells of `rows` as disjoint bands that have one in each of their rows, by first key of
  /// their rectangles; later calls ask for later rows. Valid until the next call.
  std::span<const Band> advance(Range rows);

 private:
  std::span<const Band> sorted();
  void add_block_row(std::size_t block, Range rows, std::span<const Band* const> bands);

  std::shared_ptr<const HeadView> view_;
  bool solid_;  ///< the bands allow every cell
  BandSweep sweep_;
  std::vector<Band> bands_;
};

}  // namespace longca::slice
