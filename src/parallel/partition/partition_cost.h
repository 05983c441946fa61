#pragma once

#include <cstdint>
#include <vector>

#include "cost/kernel_cost.h"
#include "cost/link_cost.h"
#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// The work of a CP rank in a backward pass. Cells are the allowed ones plus the kernel's
/// keys_per_row for each row (cost::CallCost).
struct CpRankCost {
  double cells = 0;          ///< of all its rows
  double front_cells = 0;    ///< of rows before the first that sees keys of other CP ranks
  double back_cells = 0;     ///< of rows after the last such row; both 0 if there is none
  double foreign_cells = 0;  ///< on keys of other CP ranks
  std::int64_t tokens = 0;
  std::int64_t rows = 0;      ///< that see keys of other CP ranks
  int calls = 0;              ///< kernel calls that cover just these rows
  std::int64_t received = 0;  ///< keys
  std::int64_t sent = 0;      ///< keys, once for each CP rank that sees them
  std::int64_t messages = 0;  ///< received or sent, whichever are more
  /// Keys and messages that its slowest sender has sent, to anyone, by the time this CP rank has
  /// what it needs from it. 0 over more CP ranks than a node has devices.
  std::int64_t awaited = 0;
  std::int64_t awaited_messages = 0;
};

/// Estimates, in seconds, how long CP ranks take for their backward passes.
class CpRankTimes {
 public:
  explicit CpRankTimes(const cost::Platform& platform = cost::default_platform(),
                       const cost::HeadShape& shape = {});

  double seconds(const CpRankCost& cost) const;
  /// Its exchanges, as if nothing overlapped them.
  double exchanges(const CpRankCost& cost) const;
  /// What it takes beyond its cells in one call.
  double overhead(const CpRankCost& cost) const;
  /// When the last CP rank ends, plus what the longest exchange costs even where it is overlapped
  /// (cost::covered_seconds).
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
  cost::CallCost call_;  ///< backward
  cost::CallCost half_;  ///< the same for half of the heads
};

/// Counts the work of every CP rank under a partition.
class PartitionCost {
 public:
  /// `mask` has no block lists; `platform` must outlive this. A partition serves problems of all
  /// shapes and is priced for the default one.
  explicit PartitionCost(const Mask& mask,
                         const cost::Platform& platform = cost::default_platform(),
                         const cost::HeadShape& shape = {});

  /// Per CP rank. `assigned`: per CP rank ascending and not touching; all tokens, each once.
  std::vector<CpRankCost> of(const std::vector<std::vector<Range>>& assigned) const;

  const CpRankTimes& times() const { return times_; }

 private:
  /// Counts a CP rank's rows and cells; returns the foreign keys that it sees.
  std::vector<Range> count_rows(const std::vector<Range>& own, CpRankCost& cost) const;

  CpRankTimes times_;
  std::vector<Band> bands_;
  RangeIndex rows_;
};

}  // namespace longca
