#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca {

/// What is computed in one call of a rank's queries against a block of keys. Rows and keys at the
/// edges that have no cell are cut off, so that steps become plain full or causal rectangles where
/// they can (not those of masks of many slices that are not much smaller for it).
struct Piece {
  Range rows;  ///< local numbers of the queries
  Range keys;  ///< local numbers of the block's keys
  Mask mask;   ///< [rows, keys]
};

/// Cuts a mask to one rank's queries, then to block after block of keys.
class Cutter {
 public:
  /// `queries` ascending; local number 0 is the first of them. Both may be all tokens: the mask
  /// then stays as it is. Where `min_gap` rows or more in sequence see none of a block's keys, a
  /// step is cut in two.
  Cutter(const Mask& mask, const std::vector<Range>& queries, std::int64_t min_gap);

  /// By rows, which are disjoint; at most kMaxPieces. None if no query sees any of the keys.
  std::vector<Piece> cut(const std::vector<Range>& keys) const;

  /// Exactly these rows against those of the keys that they see, in one call; none if they see
  /// none.
  std::vector<Piece> cut_rows(Range rows, const std::vector<Range>& keys) const;

  static constexpr int kMaxPieces = 4;

 private:
  Mask mask_;  ///< [own queries, all keys]
  std::int64_t min_gap_;
};

/// The rows without a cell that are worth another call: what a kernel would write of them, and the
/// merging read, costs more than the call's start and its last, half empty wave. `shape`: of the
/// call.
std::int64_t min_gap_of(const cost::Platform& platform, const cost::HeadShape& shape);

}  // namespace longca
