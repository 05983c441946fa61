#include "attention/kernels/slice/planner/tile_bands.h"

#include <algorithm>

namespace longca::slice {

TileBands::TileBands(std::shared_ptr<const HeadView> view)
    : view_(std::move(view)),
      solid_(view_->bands.size() == 1 &&
             view_->bands.front().area() == view_->rows * view_->columns),
      sweep_(view_->bands) {}

std::span<const Band> TileBands::advance(Range rows) {
  bands_.clear();
  const std::span<const Band* const> active = sweep_.advance(rows);
  if (!view_->blocks) {
    for (const Band* band : active) {
      bands_.push_back(*band);
      bands_.back().q = intersect(band->q, rows);
    }
    return sorted();
  }
  const std::vector<std::int64_t>& bounds = view_->blocks->row_bounds;
  auto block = static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), rows.begin) -
                                        bounds.begin() - 1);
  for (; block + 1 < bounds.size() && bounds[block] < rows.end; ++block) {
    add_block_row(block, intersect({bounds[block], bounds[block + 1]}, rows), active);
  }
  return sorted();
}

std::span<const Band> TileBands::sorted() {
  const auto before = [](const Band& a, const Band& b) { return a.k.begin < b.k.begin; };
  if (!std::is_sorted(bands_.begin(), bands_.end(), before)) {
    std::stable_sort(bands_.begin(), bands_.end(), before);
  }
  return bands_;
}

/// Kept blocks beside each other are one range.
void TileBands::add_block_row(std::size_t block, Range rows, std::span<const Band* const> bands) {
  const HeadView::Blocks& blocks = *view_->blocks;
  const auto kept = [&](std::int64_t i) { return blocks.indices[static_cast<std::size_t>(i)]; };
  const std::int64_t end = blocks.offsets[block + 1];
  for (std::int64_t i = blocks.offsets[block]; i < end;) {
    std::int64_t next = i + 1;
    while (next < end && kept(next) == kept(next - 1) + 1) ++next;
    const Range keys = {blocks.column_bounds[static_cast<std::size_t>(kept(i))],
                        blocks.column_bounds[static_cast<std::size_t>(kept(next - 1)) + 1]};
    i = next;
    if (solid_) {
      bands_.push_back({rows, keys});
      continue;
    }
    for (const Band* band : bands) {
      Band cells = band->clipped(rows, keys);
      cells.q = cells.rows();
      if (!cells.q.empty()) bands_.push_back(cells);
    }
  }
}

}  // namespace longca::slice
