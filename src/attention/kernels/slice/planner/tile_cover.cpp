#include "attention/kernels/slice/planner/tile_cover.h"

#include <algorithm>
#include <functional>
#include <utility>

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

/// Appends the bands of a query block's rows. Adjacent kept key blocks become one range.
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

void TileCover::cover(Range rows, std::span<const Band> bands) {
  find_ranges(rows, bands);
  place_sub_tiles();
  leave_even_runs();
}

/// From one row of a band to the next, neither end of the keys that it allows moves left, and the
/// two ranges overlap or touch. So the keys that any row of the band sees are one range, and those
/// that all its rows see are another. Bands are disjoint: of a key that all rows of several bands
/// see, the numbers of rows add up.
void TileCover::find_ranges(Range rows, std::span<const Band> bands) {
  seen_.clear();
  common_.clear();
  edges_.clear();
  for (const Band& band : bands) {
    const Range first = band.keys_of(band.q.begin);
    const Range last = band.keys_of(band.q.end - 1);
    seen_.push_back({first.begin, last.end});
    if (last.begin >= first.end) continue;
    if (band.q == rows) {
      common_.push_back({last.begin, first.end});
    } else {
      edges_.push_back({last.begin, band.q.size()});
      edges_.push_back({first.end, -band.q.size()});
    }
  }
  if (seen_.size() > 1) join_ranges(seen_);
  std::sort(edges_.begin(), edges_.end(), [](Edge a, Edge b) { return a.key < b.key; });
  std::int64_t seeing = 0;
  for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
    seeing += edges_[i].rows;
    if (seeing == rows.size()) common_.push_back({edges_[i].key, edges_[i + 1].key});
  }
  if (common_.size() > 1) join_ranges(common_);
}

void TileCover::place_sub_tiles() {
  runs_.clear();
  partial_.clear();
  remainders_.clear();
  full_sub_tiles_ = 0;
  auto common = common_.begin();
  std::int64_t covered = 0;  // all seen keys below are covered
  for (const Range& range : seen_) {
    for (std::int64_t key = std::max(covered, range.begin); key < range.end; key = covered) {
      while (common != common_.end() && common->end <= key) ++common;
      const bool inside = common != common_.end() && common->begin <= key;
      if (const std::int64_t sub_tiles = inside ? (common->end - key) / kSubTileKeys : 0;
          sub_tiles > 0) {
        runs_.push_back({static_cast<std::int32_t>(key), static_cast<std::int32_t>(sub_tiles)});
        full_sub_tiles_ += sub_tiles;
        covered = key + sub_tiles * kSubTileKeys;
      } else {
        partial_.push_back(key);
        covered = key + kSubTileKeys;
        if (range.end < covered) remainders_.push_back(range.end - key);
      }
    }
  }
}

std::int64_t TileCover::joined() const {
  std::vector<std::int64_t> columns;
  for (const std::int64_t keys : remainders_) columns.push_back(joint_columns(keys));
  std::ranges::sort(columns, std::greater{});
  std::int64_t left = std::ssize(partial_);
  pair_remainders(columns.begin(), columns.end(), [&](std::int64_t a, std::int64_t b) {
    const bool fits = a + b <= kSubTileKeys;
    left -= fits ? 1 : 0;
    return fits;
  });
  return left;
}

/// A single full sub-tile is moved to the partial ones, where it may find a partner.
void TileCover::leave_even_runs() {
  if (full_sub_tiles_ % 2 == 0) return;
  FullRun& last = runs_.back();
  --last.sub_tiles;
  partial_.push_back(last.k_begin + std::int64_t{last.sub_tiles} * kSubTileKeys);
  if (last.sub_tiles == 0) runs_.pop_back();
  --full_sub_tiles_;
}

}  // namespace longca::slice
