#pragma once

#include <cstddef>
#include <vector>

#include "parallel/plan/plan.h"

// What the ops of a pass read and write, and which may therefore run together or early.

namespace longca {

/// The regions that an op touches. What it merges or adds into counts as both read and written.
struct OpRegions {
  std::vector<Region> read, written;
};
OpRegions regions_of(const Op& op);

/// Whether the regions share an element.
bool overlap(const Region& a, const Region& b);
/// Whether one writes what the other reads or writes, so that their order matters.
bool conflict(const OpRegions& a, const OpRegions& b);

/// Runs of ops that may share one launch: consecutive copies of tensors, or consecutive Totals, on
/// the compute lane, of which none conflicts with another or waits for an op that the first does
/// not wait for. Copies of lse stay alone.
class OpRuns {
 public:
  OpRuns(const RankPlan& plan, const std::vector<Op>& ops);
  /// The first op of the run that `op` belongs to; `op` itself if it begins one or joins none.
  int first(int op) const { return first_[static_cast<std::size_t>(op)]; }

 private:
  std::vector<int> first_;  ///< by op
};

/// What follows for an exchange from its place among the ops. `ops` must outlive this object.
class ExchangeTraits {
 public:
  explicit ExchangeTraits(const std::vector<Op>& ops);
  /// Whether no attention runs while the exchange is in flight: it waits for the Attend before it,
  /// and the Attend after it waits for the exchange.
  bool is_alone(std::size_t exchange) const;
  /// Whether no op before the exchange touches its receive buffers.
  bool lands_early(std::size_t exchange) const;

 private:
  const std::vector<Op>& ops_;
  struct Touch {
    std::size_t op;
    Region region;
  };
  std::vector<std::vector<Touch>> touches_;  ///< by buffer, in the order of the ops
};

/// The row work (on dout, o and lse) of later AttendBackward ops that a backward pass can do while
/// it waits for keys.
struct EarlyRows {
  std::size_t before = 0;  ///< the first op of the compute lane that waits for an exchange
  std::vector<int> ops;    ///< ops from `before` on whose rows are complete by then; may be empty
};
EarlyRows find_early_rows(const std::vector<Op>& ops);

/// The caller's tensors that messages land in, which no AddressMap may move.
std::vector<TensorRole> tensors_that_messages_land_in(const RankPlan& plan);

}  // namespace longca
