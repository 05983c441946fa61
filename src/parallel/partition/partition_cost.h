#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "cost/link_cost.h"
#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// What a CP rank does in a backward pass. Cells are those allowed and as many more for each row as
/// a call of the kernel takes (cost::CallCost).
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
  std::int64_t messages = 0;  ///< the larger of those that bring keys and those that take them away
  /// Keys and messages that the slowest of its senders has sent when this CP rank has what it needs
  /// of that one. 0 over more CP ranks than a node has devices.
  std::int64_t awaited = 0;
  std::int64_t awaited_messages = 0;
};

/// How long CP ranks take for their backward passes, in seconds.
class CpRankTimes {
 public:
  explicit CpRankTimes(const cost::Platform& platform = cost::default_platform(),
                       const cost::HeadShape& shape = {});

  double seconds(const CpRankCost& cost) const;
  /// Its exchanges, if nothing covered them.
  double exchanges(const CpRankCost& cost) const;
  /// Beyond what its cells take in one call.
  double overhead(const CpRankCost& cost) const;
  /// When the last CP rank ends, and what the longest exchange costs although it is covered.
  double price_of(const std::vector<CpRankCost>& costs) const;

  const cost::CallCost& call() const { return call_; }
  const cost::Platform& platform() const { return *platform_; }

 private:
  cost::ExchangeSeconds exchange(const CpRankCost& cost) const;
  double by_rows(const CpRankCost& cost) const;
  double by_keys(const CpRankCost& cost) const;
  double rounding(const CpRankCost& cost) const;

  const cost::Platform* platform_;
  cost::HeadShape shape_;
  cost::CallCost call_;
  cost::CallCost half_;
};

/// Counts what it costs that tokens are assigned to CP ranks.
class PartitionCost {
 public:
  /// A mask without block lists. The platform must outlive this. A partition serves problems of all
  /// shapes: the default is what it is priced for.
  explicit PartitionCost(const Mask& mask,
                         const cost::Platform& platform = cost::default_platform(),
                         const cost::HeadShape& shape = {});

  /// Per CP rank. `assigned`: per CP rank ascending and not touching; all tokens, each once.
  std::vector<CpRankCost> of(const std::vector<std::vector<Range>>& assigned) const;

  const CpRankTimes& times() const { return times_; }

 private:
  std::vector<Range> count_rows(const std::vector<Range>& own, CpRankCost& cost) const;

  CpRankTimes times_;
  std::vector<Band> bands_;
  RangeIndex rows_;
};

}  // namespace longca
