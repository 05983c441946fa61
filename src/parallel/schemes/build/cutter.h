#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// What is computed of a rank's queries against a block of keys. Rows and keys at the edges that
/// have no cell are cut off, so that steps become plain full or causal rectangles where they can
/// (not those of masks of many slices that are not much smaller for it).
struct Piece {
  Range rows;  ///< local numbers of the queries
  Range keys;  ///< local numbers of the block's keys
  Mask mask;   ///< [rows, keys]
};

/// Cuts a mask to one rank's queries, then to block after block of keys.
class Cutter {
 public:
  /// `queries` ascending; local number 0 is the first of them. Both may be all tokens: the mask
  /// then stays as it is.
  Cutter(const Mask& mask, const std::vector<Range>& queries);

  /// Nothing if no query sees any of the keys.
  std::optional<Piece> cut(const std::vector<Range>& keys) const;

 private:
  Mask mask_;  ///< [own queries, all keys]
};

}  // namespace longca
