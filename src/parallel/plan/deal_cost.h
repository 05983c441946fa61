#pragma once

#include <vector>

#include "mask/band.h"
#include "mask/mask.h"
#include "mask/range_index.h"

namespace longca {

/// What a position does beyond what concerns its own keys alone, in tokens.
struct PositionCost {
  double received = 0;  ///< keys
  double sent = 0;      ///< keys, once for each position that sees them
  double rows = 0;      ///< that see keys of others, and their kernel calls

  double total() const { return (sent > received ? sent : received) + rows; }
};

/// What it costs that tokens are dealt to positions: keys that travel, rows that see keys of other
/// positions, and kernel calls for those rows.
class DealCost {
 public:
  /// A mask without block lists.
  explicit DealCost(const Mask& mask);

  /// Per position. `dealt`: per position ascending and not touching; all tokens, each once.
  std::vector<PositionCost> of(const std::vector<std::vector<Range>>& dealt) const;

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
