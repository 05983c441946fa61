#pragma once

#include <array>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// Rows `rows` of a region, counted from its first.
Region with_rows(Region region, Range rows);

/// Writes the ops of one rank's plan and derives what each waits for: the last op of the other lane
/// with which it has a read-after-write, write-after-read or write-after-write conflict.
class PlanWriter {
 public:
  PlanWriter(int rank, int ranks);

  int add_buffer(PlanBuffer buffer);
  int add_mask(Mask mask);
  void add_note(std::string note) { plan_.notes.push_back(std::move(note)); }
  void add_result(Placement placement) { plan_.results.push_back(std::move(placement)); }
  const Mask& mask(int index) const { return plan_.masks[static_cast<std::size_t>(index)]; }

  /// Starts the backward list. All ops of the forward list have completed before it runs.
  void begin_backward();

  /// Exchanges run on the communication lane, all other ops on the compute lane. Empty exchanges
  /// are left out.
  void add(Exchange exchange, int step);
  void add(Attend attend, int step);
  void add(AttendBackward attend, int step);
  /// Ops on empty regions are left out.
  void add(Add add, int step);
  void add(Convert convert, int step);
  void add(Total total, int step);
  void add(Clear clear, int step);
  void add(Copy copy, int step);
  void add(JoinSinks join, int step);
  /// On empty regions too: it clears what other heads have.
  void add(SinkGradients gradients, int step);

  RankPlan take() { return std::move(plan_); }

 private:
  struct Access {
    int op = 0;
    bool writes = false;
    Region region;
  };
  struct Use {
    Region region;
    bool writes = false;
  };
  void append(Op op, const std::vector<Use>& uses);
  /// The last op of the other lane that `use` conflicts with, or `known` if none is later.
  int last_conflict(const Use& use, std::size_t other_lane, int known) const;

  RankPlan plan_;
  std::vector<Op>* ops_;
  /// Per buffer and lane, in the order of the ops.
  std::vector<std::array<std::vector<Access>, 2>> accesses_;
  /// Per lane: the last op of the other lane that it has waited for, −1 if none.
  std::array<int, 2> waited_ = {-1, -1};
};

}  // namespace longca
