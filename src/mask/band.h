#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// A diagonal limit that no cell can reach.
inline constexpr std::int64_t kNoLimit = std::int64_t{1} << 40;

/// The cells (q, k) of a rectangle with lo ≤ k − q ≤ hi. Unlike slices, bands are closed under
/// clipping, shifting and transposition: all queries work on them.
struct Band {
  Range q;
  Range k;
  std::int64_t lo = -kNoLimit;
  std::int64_t hi = kNoLimit;

  static Band of(const MaskSlice& slice);

  /// The rows that have a cell; they are consecutive. {q.begin, q.begin} for a band without cells.
  Range rows() const;
  bool empty() const { return rows().empty(); }
  /// The cells of row `row` of [q.begin, q.end); begin and end never decrease with the row. May end
  /// before it begins where the row has none.
  Range keys_of(std::int64_t row) const;
  /// Number of cells; O(1).
  std::int64_t area() const;
  Band clipped(Range q_range, Range k_range) const;
  /// Cells that both allow.
  Band intersected(const Band& other) const;
  Band transposed() const { return {k, q, -hi, -lo}; }
};

/// Ends before it begins if they do not meet.
inline Range intersect(Range a, Range b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// Sorts by begin, joins what touches or overlaps, drops what is empty.
void join_ranges(std::vector<Range>& ranges);

/// Appends the cells of `band` as at most three corner-aligned slices, top to bottom: the rows are
/// split where the upper diagonal reaches k.end and where the lower one leaves k.begin.
void append_band(std::vector<MaskSlice>& slices, const Band& band);

/// The same cells in fewer slices where one slice can hold those of two: pieces beside each other,
/// then pieces below each other.
std::vector<MaskSlice> joined_slices(std::vector<MaskSlice> slices);

}  // namespace longca
