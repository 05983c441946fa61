#include "mask/convert.h"

#include <algorithm>

#include "core/error.h"
#include "core/rounding.h"
#include "mask/mask_slice.h"
#include "mask/tiles.h"

namespace longca {
namespace {

/// Whether block lists drop no cell of the slices.
bool same_for_all_heads(const Mask& mask) {
  if (mask.blocks() == nullptr) return true;
  std::int64_t area = 0;
  for (const MaskSlice& slice : mask.slices()) area += slice.area();
  for (int head = 0; head < mask.heads(); ++head) {
    if (mask.area(head) != area) return false;
  }
  return true;
}

/// The document bounds of a mask of documents, for which the queries that attend to a document's
/// first key are the document; nothing if some first key's queries are not consecutive.
std::optional<std::vector<std::int64_t>> document_bounds(const Mask& mask) {
  std::vector<std::int64_t> bounds = {0};
  while (bounds.back() < mask.k_tokens()) {
    const auto queries = mask.query_intervals(0, bounds.back());
    if (queries.size() != 1 || queries[0].begin != bounds.back()) return std::nullopt;
    bounds.push_back(queries[0].end);
  }
  return bounds;
}

/// The mask's cells inside documents, all or those on and below the diagonal.
std::int64_t area_in_documents(const Mask& mask, const std::vector<std::int64_t>& bounds,
                               bool causal) {
  std::int64_t area = 0;
  for (const MaskSlice& slice : mask.slices()) {
    Band band = Band::of(slice);
    if (causal) band.hi = std::min<std::int64_t>(band.hi, 0);
    auto begin = std::upper_bound(bounds.begin(), bounds.end(), slice.q_begin) - 1;
    for (; begin + 1 != bounds.end() && *begin < slice.q_end; ++begin) {
      const Range document = {*begin, *(begin + 1)};
      area += band.clipped(document, document).area();
    }
  }
  return area;
}

std::int64_t area_of_documents(const std::vector<std::int64_t>& bounds, bool causal) {
  std::int64_t area = 0;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const std::int64_t length = bounds[i + 1] - bounds[i];
    area += causal ? length * (length + 1) / 2 : length * length;
  }
  return area;
}

/// Writes the masked rows of each column as FlashMask's two intervals.
class ColumnWriter {
 public:
  ColumnWriter(std::int64_t columns, std::int64_t rows) : rows_(static_cast<std::int32_t>(rows)) {
    const auto count = static_cast<std::size_t>(columns);
    intervals_.lt_start.assign(count, rows_);
    intervals_.lt_end.assign(count, rows_);
    intervals_.ut_start.assign(count, 0);
    intervals_.ut_end.assign(count, 0);
  }

  /// `allowed` rows: ascending, disjoint, not adjacent. False if more than two intervals are
  /// masked.
  bool write(std::int64_t column, std::span<const Range> allowed) {
    const auto k = static_cast<std::size_t>(column);
    std::int32_t masked_begin = 0;
    int count = 0;
    const auto add_masked = [&](std::int32_t end) {
      if (masked_begin >= end) return;
      ++count;
      const bool above = masked_begin < column;
      if (count == 1 && above) {
        intervals_.ut_start[k] = masked_begin;
        intervals_.ut_end[k] = end;
      } else if (intervals_.lt_start[k] == rows_) {
        intervals_.lt_start[k] = masked_begin;
        intervals_.lt_end[k] = end;
      } else {
        move_lower_to_upper(k);
        intervals_.lt_start[k] = masked_begin;
        intervals_.lt_end[k] = end;
      }
    };
    for (const Range range : allowed) {
      add_masked(static_cast<std::int32_t>(range.begin));
      masked_begin = static_cast<std::int32_t>(range.end);
    }
    add_masked(rows_);
    return count <= 2;
  }

  ColumnIntervals take() { return std::move(intervals_); }

 private:
  /// Of two masked intervals below the diagonal, the first goes into the upper, unused, interval.
  void move_lower_to_upper(std::size_t k) {
    intervals_.ut_start[k] = intervals_.lt_start[k];
    intervals_.ut_end[k] = intervals_.lt_end[k];
  }

  std::int32_t rows_;
  ColumnIntervals intervals_;
};

}  // namespace

std::optional<DocumentForm> document_form(const Mask& mask) {
  if (mask.q_tokens() != mask.k_tokens() || !same_for_all_heads(mask)) return std::nullopt;
  auto bounds = document_bounds(mask);
  if (!bounds) return std::nullopt;
  for (const bool causal : {false, true}) {
    const std::int64_t area = mask.area(0);
    if (area == area_of_documents(*bounds, causal) &&
        area == area_in_documents(mask, *bounds, causal)) {
      return DocumentForm{std::move(*bounds), causal};
    }
  }
  return std::nullopt;
}

std::optional<WindowForm> window_form(const Mask& mask) {
  if (!same_for_all_heads(mask)) return std::nullopt;
  const std::int64_t q_tokens = mask.q_tokens();
  const std::int64_t k_tokens = mask.k_tokens();
  if (q_tokens == 0 || k_tokens == 0) return WindowForm{};
  if (mask.slices().empty()) return std::nullopt;
  // The band between the outermost diagonals with a cell; the mask is a window if it fills the
  // band.
  Band window{{0, q_tokens}, {0, k_tokens}, kNoLimit, -kNoLimit};
  for (const MaskSlice& slice : mask.slices()) {
    const Band band = Band::of(slice);
    window.lo = std::min(window.lo, std::max(band.lo, band.k.begin - (band.q.end - 1)));
    window.hi = std::max(window.hi, std::min(band.hi, band.k.end - 1 - band.q.begin));
  }
  if (window.area() != mask.area(0)) return std::nullopt;
  const std::int64_t offset = k_tokens - q_tokens;
  const bool limited_left = window.lo > -(q_tokens - 1);
  const bool limited_right = window.hi < k_tokens - 1;
  const WindowForm form = {limited_left ? offset - window.lo : -1,
                           limited_right ? window.hi - offset : -1};
  if ((limited_left && form.left < 0) || (limited_right && form.right < 0)) return std::nullopt;
  return form;
}

std::optional<ColumnIntervals> column_intervals(const Mask& mask, int head) {
  const HeadView view = HeadView::transposed(mask, head);
  BandSweep sweep(view.bands);
  ColumnWriter writer(view.rows, view.columns);
  std::vector<Range> allowed;
  for (std::int64_t k = 0; k < view.rows; ++k) {
    if (view.blocks) {
      allowed = mask.query_intervals(head, k);
    } else {
      allowed.clear();
      for (const Band* band : sweep.advance({k, k + 1})) allowed.push_back(band->keys_of(k));
      join_ranges(allowed);
    }
    if (!writer.write(k, allowed)) return std::nullopt;
  }
  return writer.take();
}

BlockBitmap block_bitmap(const Mask& mask, int head, std::int64_t block_m, std::int64_t block_n) {
  const TileRuns tiles = tile_runs(mask, head, block_m, block_n);
  BlockBitmap bitmap{tiles.rows(), ceil_div(mask.k_tokens(), block_n), {}};
  bitmap.classes.assign(static_cast<std::size_t>(bitmap.rows * bitmap.columns), TileClass::empty);
  for (std::int64_t i = 0; i < bitmap.rows; ++i) {
    const auto row = bitmap.classes.begin() + i * bitmap.columns;
    for (const TileRun& run : tiles.row(i)) {
      std::fill(row + run.begin, row + run.end, run.tile_class);
    }
  }
  return bitmap;
}

}  // namespace longca
