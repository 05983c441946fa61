#pragma once

#include <span>
#include <vector>

#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// Answers which keys a set of queries sees, in any head. Indexed once, asked for many sets.
class SeenKeys {
 public:
  explicit SeenKeys(const Mask& mask);

  /// Ascending, not touching; exact: every key of the result is seen by a query of `rows`.
  std::vector<Range> by(std::span<const Range> rows) const;

 private:
  void add_from_bands(Range rows, Range keys, std::vector<Range>& seen) const;
  void add_from_blocks(Range rows, std::vector<Range>& seen) const;

  Mask mask_;
  std::vector<Band> bands_;
  RangeIndex rows_;
};

/// Both ascending and disjoint; so is the result.
std::vector<Range> common_ranges(std::span<const Range> a, std::span<const Range> b);

}  // namespace longca
