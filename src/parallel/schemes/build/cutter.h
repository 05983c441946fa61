#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "mask/mask.h"

namespace longca {

/// One kernel call: some of a rank's queries against some keys of a block. Rows and keys without
/// cells are trimmed at the edges, so that calls become full or causal rectangles where possible
/// (with many slices only where much is trimmed).
struct Piece {
  Range rows;  ///< of the rank's queries, from 0
  Range keys;  ///< of the block's keys, from 0
  Mask mask;   ///< [rows, keys]
};

/// Restricts a mask to one rank's queries, then to each block of keys.
class Cutter {
 public:
  /// `queries`: ascending; local number 0 is the first of them. A step is cut in two where at least
  /// `min_gap` consecutive rows see none of a block's keys.
  Cutter(const Mask& mask, const std::vector<Range>& queries, std::int64_t min_gap);

  /// At most kMaxPieces pieces with disjoint rows; none if no query sees any of the keys.
  std::vector<Piece> cut(const std::vector<Range>& keys) const;

  /// One piece with exactly these rows and the keys that they see; none if they see none.
  std::vector<Piece> cut_rows(Range rows, const std::vector<Range>& keys) const;

  static constexpr int kMaxPieces = 4;

 private:
  Mask mask_;  ///< [own queries, all keys]
  std::int64_t min_gap_;
};

/// The least number of consecutive rows without cells for which a second call is cheaper: writing
/// and merging those rows takes longer than a call's fixed cost. `shape`: of the call.
std::int64_t min_gap_of(const cost::Platform& platform, const cost::HeadShape& shape);

}  // namespace longca
