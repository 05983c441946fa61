#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mask/head_view.h"

namespace longca::slice {

/// Walks one list of a mask from top to bottom and cuts its cells to query tiles.
class TileBands {
 public:
  TileBands(const Mask& mask, int list) : TileBands(HeadView::of(mask, list)) {}
  /// Of a transposed view, rows are keys.
  explicit TileBands(HeadView view) : view_(std::move(view)), sweep_(view_.bands) {}

  /// The cells of `rows` as disjoint bands that have one in each of their rows, by first key of
  /// their rectangles; later calls ask for later rows. Valid until the next call.
  std::span<const Band> advance(Range rows);

 private:
  std::span<const Band> sorted();
  void add_block_row(std::size_t block, Range rows, std::span<const Band* const> bands);

  HeadView view_;
  BandSweep sweep_;
  std::vector<Band> bands_;
};

}  // namespace longca::slice
