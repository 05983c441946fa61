#pragma once

#include <span>
#include <vector>

#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// Answers which keys a set of queries sees in at least one head; the index is built once.
class SeenKeys {
 public:
  explicit SeenKeys(const Mask& mask);

  /// Exactly the keys that some query of `rows` sees; ascending, not touching.
  std::vector<Range> by(std::span<const Range> rows) const;

 private:
  void add_from_bands(Range rows, Range keys, std::vector<Range>& seen) const;
  void add_from_blocks(Range rows, std::vector<Range>& seen) const;

  Mask mask_;  ///< of any head
  std::vector<Band> bands_;
  RangeIndex rows_;
};

/// The intersection of two lists; all three are ascending and disjoint.
std::vector<Range> common_ranges(std::span<const Range> a, std::span<const Range> b);

}  // namespace longca
