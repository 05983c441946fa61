#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/range.h"

namespace longca {

enum class MaskSliceType : std::uint8_t {
  full,            ///< every cell of the rectangle
  causal,          ///< k − k_end ≤ q − q_end: aligned to the bottom-right corner
  inverse_causal,  ///< k − k_begin ≥ q − q_begin: aligned to the top-left corner
  bi_causal,       ///< both of the above
};

/// "full", "causal", "inverse_causal", "bi_causal".
std::string_view to_string(MaskSliceType type);
std::optional<MaskSliceType> parse_slice_type(std::string_view text);

/// A rectangle of (query, key) cells cut by at most two diagonals; a mask is a list of these.
struct MaskSlice {
  std::int64_t q_begin = 0;
  std::int64_t q_end = 0;
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
  MaskSliceType type = MaskSliceType::full;

  /// Keys that query q may see, {k_begin, k_begin} if none.
  Range keys_of(std::int64_t q) const;
  bool allows(std::int64_t q, std::int64_t k) const;
  /// Number of allowed cells; O(1).
  std::int64_t area() const;
  bool operator==(const MaskSlice&) const = default;
};

/// "[0, 64) × [0, 128) causal": queries × keys, type.
std::string to_string(const MaskSlice& slice);

/// A diagonal beyond every cell: no limit.
inline constexpr std::int64_t kNoLimit = std::int64_t{1} << 40;

/// The cells (q, k) of a rectangle with lo ≤ k − q ≤ hi. Bands, unlike slices, are closed under
/// clipping, shifting and transposition, so all queries of a mask use them.
struct Band {
  Range q;
  Range k;
  std::int64_t lo = -kNoLimit;
  std::int64_t hi = kNoLimit;

  static Band of(const MaskSlice& slice);

  /// The rows that have a cell, which are consecutive; {q.begin, q.begin} if none has.
  Range rows() const;
  bool empty() const { return rows().empty(); }
  /// The keys of `row` in [q.begin, q.end); ends before it begins if there are none. Begin and end
  /// never decrease from one row to the next.
  Range keys_of(std::int64_t row) const;
  /// Number of cells; O(1).
  std::int64_t area() const;
  Band clipped(Range q_range, Range k_range) const;
  /// The cells that are in both bands.
  Band intersected(const Band& other) const;
  Band transposed() const { return {k, q, -hi, -lo}; }
};

/// Band::rows of each.
std::vector<Range> rows_of(std::span<const Band> bands);

/// Appends the cells of `band` as at most three corner-aligned slices, top to bottom: rows are
/// split where the diagonal `hi` reaches k.end and where the diagonal `lo` leaves k.begin.
void append_band(std::vector<MaskSlice>& slices, const Band& band);

/// The same cells in fewer slices: replaces two slices by one where one holds exactly their cells,
/// first among slices of the same rows, then among slices above each other.
std::vector<MaskSlice> joined_slices(std::vector<MaskSlice> slices);

}  // namespace longca
