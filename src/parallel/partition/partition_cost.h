#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// What a CP rank does in a backward pass, and how long that would take. Cells count with
/// rates::kBackwardKeysPerRow more for each row.
struct CpRankCost {
  double cells = 0;          ///< of all its rows
  double front_cells = 0;    ///< of rows before the first that sees keys of other CP ranks
  double back_cells = 0;     ///< of rows behind the last; both 0 where none sees any
  double foreign_cells = 0;  ///< of keys of other CP ranks
  std::int64_t tokens = 0;
  std::int64_t rows = 0;      ///< that see keys of others
  int calls = 0;              ///< for those rows, if for no others
  std::int64_t received = 0;  ///< keys
  std::int64_t sent = 0;      ///< keys, once for each CP rank that sees them
  std::int64_t messages = 0;  ///< that bring keys or take them away, whichever are more
  /// Keys, and messages, that one of its senders has sent when it has what this CP rank needs of
  /// it: the most of any. 0 over more than 8 CP ranks.
  std::int64_t awaited = 0;
  std::int64_t awaited_messages = 0;

  double seconds() const;
  /// Of what it sends and gets, if nothing hid it.
  double exchanges() const;
  /// Beyond what its cells take in one call.
  double overhead() const;

 private:
  double fetch() const;
  double reduce() const;
  double rounding() const;
  double by_rows() const;
  double by_keys() const;
};

/// When the last CP rank ends, in seconds, and a part of the longest exchange: what seems hidden
/// slows a kernel down, and on some links lasts longer.
double price_of(const std::vector<CpRankCost>& costs);
/// What a cell of 64 heads of 128 takes in a backward pass.
double seconds_per_cell();

/// What it costs that tokens are assigned to CP ranks. A partition serves problems of all shapes;
/// it is priced for the backward pass, which takes longest, of 64:8 heads of 128 in bfloat16, by
/// the rates (rates.h) that a rank chooses its steps by (schemes/build/joint_costs.h).
class PartitionCost {
 public:
  /// A mask without block lists.
  explicit PartitionCost(const Mask& mask);

  /// Per CP rank. `assigned`: per CP rank ascending and not touching; all tokens, each once.
  std::vector<CpRankCost> of(const std::vector<std::vector<Range>>& assigned) const;

 private:
  std::vector<Range> count_rows(const std::vector<Range>& own, CpRankCost& cost) const;

  std::vector<Band> bands_;
  RangeIndex rows_;
};

}  // namespace longca
