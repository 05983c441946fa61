#include "mask/tiles.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/rounding.h"

namespace longca {
namespace {

std::vector<Band> sorted_bands(const Mask& mask, bool transpose) {
  std::vector<Band> bands;
  bands.reserve(mask.slices().size());
  for (const MaskSlice& slice : mask.slices()) {
    Band band = Band::of(slice);
    if (transpose) band = band.transposed();
    band.q = band.rows();
    bands.push_back(band);
  }
  const auto before = [](const Band& a, const Band& b) { return a.q.begin < b.q.begin; };
  if (!std::is_sorted(bands.begin(), bands.end(), before)) {
    std::sort(bands.begin(), bands.end(), before);
  }
  return bands;
}

HeadView::Blocks blocks_of_head(const BlockLists& lists, int head) {
  const auto first = static_cast<std::size_t>(head * lists.q_blocks());
  const auto last = first + static_cast<std::size_t>(lists.q_blocks());
  HeadView::Blocks blocks{lists.q_bounds, lists.k_bounds, {}, {}};
  for (std::size_t i = first; i <= last; ++i) {
    blocks.offsets.push_back(lists.offsets[i] - lists.offsets[first]);
  }
  blocks.indices.assign(lists.indices.begin() + lists.offsets[first],
                        lists.indices.begin() + lists.offsets[last]);
  return blocks;
}

HeadView::Blocks transposed_blocks(const HeadView::Blocks& blocks) {
  HeadView::Blocks out{blocks.column_bounds, blocks.row_bounds, {}, {}};
  std::vector<std::int64_t> next(blocks.column_bounds.size(), 0);
  for (const std::int32_t column : blocks.indices) ++next[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  out.offsets = next;
  out.indices.resize(blocks.indices.size());
  for (std::size_t row = 0; row + 1 < blocks.offsets.size(); ++row) {
    for (std::int64_t i = blocks.offsets[row]; i < blocks.offsets[row + 1]; ++i) {
      const auto column = static_cast<std::size_t>(blocks.indices[static_cast<std::size_t>(i)]);
      out.indices[static_cast<std::size_t>(next[column]++)] = static_cast<std::int32_t>(row);
    }
  }
  return out;
}

}  // namespace

HeadView HeadView::of(const Mask& mask, int head) {
  LONGCA_CHECK(head >= 0 && head < mask.heads(), "head {} of a mask of {}", head, mask.heads());
  HeadView view{mask.q_tokens(), mask.k_tokens(), sorted_bands(mask, false), std::nullopt};
  if (mask.blocks() != nullptr) view.blocks = blocks_of_head(*mask.blocks(), head);
  return view;
}

HeadView HeadView::transposed(const Mask& mask, int head) {
  LONGCA_CHECK(head >= 0 && head < mask.heads(), "head {} of a mask of {}", head, mask.heads());
  HeadView view{mask.k_tokens(), mask.q_tokens(), sorted_bands(mask, true), std::nullopt};
  if (mask.blocks() != nullptr) {
    view.blocks = transposed_blocks(blocks_of_head(*mask.blocks(), head));
  }
  return view;
}

std::span<const Band* const> BandSweep::advance(Range rows) {
  std::erase_if(active_, [&](const Band* band) { return band->q.end <= rows.begin; });
  for (; next_ < bands_.size() && bands_[next_].q.begin < rows.end; ++next_) {
    if (bands_[next_].q.end > rows.begin) active_.push_back(&bands_[next_]);
  }
  return active_;
}

void for_each_row(
    const Mask& mask, int head,
    const std::function<void(std::int64_t q, const std::vector<Range>& keys)>& visit) {
  if (mask.blocks() != nullptr) {
    for (std::int64_t q = 0; q < mask.q_tokens(); ++q) visit(q, mask.key_intervals(head, q));
    return;
  }
  const HeadView view = HeadView::of(mask, head);
  BandSweep sweep(view.bands);
  std::vector<Range> keys;
  for (std::int64_t q = 0; q < view.rows; ++q) {
    keys.clear();
    for (const Band* band : sweep.advance({q, q + 1})) keys.push_back(band->keys_of(q));
    join_ranges(keys);
    visit(q, keys);
  }
}

namespace {

/// Tiles of one row that a band covers in part.
struct PartialRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Band band;  ///< its cells in this tile row
};

/// Builds the runs of a view's tile rows, top to bottom.
class TileRunBuilder {
 public:
  TileRunBuilder(const HeadView& view, std::int64_t tile_rows, std::int64_t tile_columns)
      : view_(view), tile_n_(tile_columns), sweep_(view.bands) {
    LONGCA_CHECK(tile_rows > 0 && tile_columns > 0, "tiles of {} × {}", tile_rows, tile_columns);
    result_.tile_m = tile_rows;
    result_.tile_n = tile_columns;
    columns_ = ceil_div(view.columns, tile_columns);
    if (view.blocks) areas_.resize(static_cast<std::size_t>(columns_));
  }

  TileRuns build() {
    const std::int64_t rows = ceil_div(view_.rows, result_.tile_m);
    result_.offsets.reserve(static_cast<std::size_t>(rows) + 1);
    result_.offsets.push_back(0);
    for (std::int64_t i = 0; i < rows; ++i) {
      const Range tile = {i * result_.tile_m, std::min((i + 1) * result_.tile_m, view_.rows)};
      const auto bands = sweep_.advance(tile);
      view_.blocks ? list_row_of_blocks(tile, bands) : list_row(tile, bands);
      result_.offsets.push_back(static_cast<std::int64_t>(result_.runs.size()));
    }
    return std::move(result_);
  }

 private:
  Range keys_of_column(std::int64_t column) const {
    return {column * tile_n_, std::min((column + 1) * tile_n_, view_.columns)};
  }

  void emit(std::int64_t begin, std::int64_t end, TileClass tile_class) {
    if (begin >= end || tile_class == TileClass::empty) return;
    const bool first_of_row =
        static_cast<std::int64_t>(result_.runs.size()) == result_.offsets.back();
    if (!first_of_row) {
      TileRun& last = result_.runs.back();
      if (last.end == begin && last.tile_class == tile_class) {
        last.end = static_cast<std::int32_t>(end);
        return;
      }
    }
    result_.runs.push_back(
        {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), tile_class});
  }

  void emit_tile(std::int64_t column, std::int64_t area, std::int64_t cells) {
    if (area == 0) return;
    emit(column, column + 1, area == cells ? TileClass::full : TileClass::partial);
  }

  /// A band's key range never moves left from one row to the next and overlaps or touches the next
  /// row's, so the keys allowed in any row of a tile row, and those in all its rows, are one range
  /// each.
  void add_band(Range tile, const Band& whole) {
    Band band = whole;
    band.q = intersect(band.q, tile);
    const Range first = band.keys_of(band.q.begin);
    const Range last = band.keys_of(band.q.end - 1);
    const Range touched = {first.begin / tile_n_, ceil_div(last.end, tile_n_)};
    Range filled = {touched.end, touched.end};
    if (band.q == tile && first.end > last.begin) {
      const Range whole_tiles = {ceil_div(last.begin, tile_n_),
                                 first.end == view_.columns ? columns_ : first.end / tile_n_};
      if (!whole_tiles.empty()) filled = whole_tiles;
    }
    if (touched.begin < filled.begin) partial_.push_back({touched.begin, filled.begin, band});
    if (!filled.empty()) full_.push_back(filled);
    if (filled.end < touched.end) partial_.push_back({filled.end, touched.end, band});
  }

  void list_row(Range tile, std::span<const Band* const> bands) {
    partial_.clear();
    full_.clear();
    for (const Band* band : bands) add_band(tile, *band);
    std::sort(partial_.begin(), partial_.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::sort(full_.begin(), full_.end(), [](Range a, Range b) { return a.begin < b.begin; });
    auto full = full_.begin();
    for (std::size_t i = 0; i < partial_.size();) {
      // Bands are disjoint, so the ranges that one band fills lie between the clusters.
      for (; full != full_.end() && full->begin < partial_[i].begin; ++full) {
        emit(full->begin, full->end, TileClass::full);
      }
      i = list_cluster(tile, i);
    }
    for (; full != full_.end(); ++full) emit(full->begin, full->end, TileClass::full);
  }

  /// Emits the overlapping partial ranges from index `first` on; returns the index after them.
  /// Cells are counted only in tiles that several bands share.
  std::size_t list_cluster(Range tile, std::size_t first) {
    std::size_t last = first + 1;
    std::int64_t end = partial_[first].end;
    for (; last < partial_.size() && partial_[last].begin < end; ++last) {
      end = std::max(end, partial_[last].end);
    }
    if (last == first + 1) {
      emit(partial_[first].begin, end, TileClass::partial);
      return last;
    }
    for (std::int64_t column = partial_[first].begin; column < end; ++column) {
      const Range keys = keys_of_column(column);
      std::int64_t area = 0;
      for (std::size_t i = first; i < last && partial_[i].begin <= column; ++i) {
        if (column < partial_[i].end) area += partial_[i].band.clipped(tile, keys).area();
      }
      emit_tile(column, area, tile.size() * keys.size());
    }
    return last;
  }

  void list_row_of_blocks(Range tile, std::span<const Band* const> bands) {
    std::fill(areas_.begin(), areas_.end(), 0);
    const auto& bounds = view_.blocks->row_bounds;
    auto block = static_cast<std::size_t>(
        std::upper_bound(bounds.begin(), bounds.end(), tile.begin) - bounds.begin() - 1);
    for (; block + 1 < bounds.size() && bounds[block] < tile.end; ++block) {
      add_block_row(block, intersect({bounds[block], bounds[block + 1]}, tile), bands);
    }
    for (std::int64_t column = 0; column < columns_; ++column) {
      emit_tile(column, areas_[static_cast<std::size_t>(column)],
                tile.size() * keys_of_column(column).size());
    }
  }

  void add_block_row(std::size_t block, Range rows, std::span<const Band* const> bands) {
    const HeadView::Blocks& blocks = *view_.blocks;
    bool solid = false;  // one band allows every cell of these rows
    for (const Band* band : bands) {
      solid |= band->clipped(rows, {0, view_.columns}).area() == rows.size() * view_.columns;
    }
    const auto cells = [&](Range keys) {
      if (solid) return rows.size() * keys.size();
      std::int64_t area = 0;
      for (const Band* band : bands) area += band->clipped(rows, keys).area();
      return area;
    };
    for (std::int64_t i = blocks.offsets[block]; i < blocks.offsets[block + 1]; ++i) {
      const auto kept = static_cast<std::size_t>(blocks.indices[static_cast<std::size_t>(i)]);
      const Range keys = {blocks.column_bounds[kept], blocks.column_bounds[kept + 1]};
      for (std::int64_t column = keys.begin / tile_n_; column * tile_n_ < keys.end; ++column) {
        areas_[static_cast<std::size_t>(column)] += cells(intersect(keys, keys_of_column(column)));
      }
    }
  }

  const HeadView& view_;
  std::int64_t tile_n_;
  std::int64_t columns_ = 0;  ///< of tiles
  BandSweep sweep_;
  TileRuns result_;
  std::vector<PartialRange> partial_;
  std::vector<Range> full_;
  std::vector<std::int64_t> areas_;  ///< allowed cells per tile column, for block lists
};

}  // namespace

std::span<const TileRun> TileRuns::row(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  return std::span(runs).subspan(static_cast<std::size_t>(offsets[at]),
                                 static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
}

std::int64_t TileRuns::tiles() const {
  std::int64_t count = 0;
  for (const TileRun& run : runs) count += run.end - run.begin;
  return count;
}

TileRuns tile_runs(const Mask& mask, int head, std::int64_t tile_m, std::int64_t tile_n) {
  const HeadView view = HeadView::of(mask, head);
  return TileRunBuilder(view, tile_m, tile_n).build();
}

TileRuns transposed_tile_runs(const Mask& mask, int head, std::int64_t tile_m,
                              std::int64_t tile_n) {
  const HeadView view = HeadView::transposed(mask, head);
  TileRuns runs = TileRunBuilder(view, tile_n, tile_m).build();
  std::swap(runs.tile_m, runs.tile_n);
  return runs;
}

}  // namespace longca
