#pragma once

#include <vector>

#include "mask/band.h"
#include "mask/mask.h"
#include "mask/range_index.h"

namespace longca {

/// What it costs that tokens are dealt to positions: keys that travel, rows that see keys of other
/// positions, and kernel calls for those rows.
class DealCost {
 public:
  /// A mask without block lists.
  explicit DealCost(const Mask& mask);

  /// Of the position that it costs most, in tokens. `dealt`: per position ascending and not
  /// touching; all tokens, each once.
  double of(const std::vector<std::vector<Range>>& dealt) const;

 private:
  struct Foreign {
    std::vector<Range> keys;
    std::vector<Range> rows;  ///< of the position's own
  };
  Foreign foreign_of(const std::vector<Range>& own) const;

  std::vector<Band> bands_;
  RangeIndex rows_;
};

}  // namespace longca
