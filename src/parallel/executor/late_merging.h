#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// The float32 buffers of one pass whose partial results may be merged late: nothing looks at them
/// between the steps that write them, all heads of some rows each, and the one Convert that ends
/// these rows. Of o and its lse, or of dq.
class LateMerging {
 public:
  LateMerging(const RankPlan& plan, const std::vector<Op>& ops);
  bool allowed(int buffer) const { return allowed_[static_cast<std::size_t>(buffer)]; }

 private:
  struct Rows {
    std::vector<Range> written, converted;
    std::optional<Region> lse;  ///< of an o: buffer and heads of its lse, whose rows are the same
  };
  void forbid(const Region& region) { allowed_[static_cast<std::size_t>(region.buffer)] = false; }
  void write(const Region& into, bool first);
  void look_at(const Op& op);
  void pair(const Region& o, const Region& lse);
  void forbid_unfinished();
  void forbid_shared_lse(const std::vector<Op>& ops);

  const RankPlan& plan_;
  std::vector<bool> allowed_;
  std::vector<Rows> rows_;
};

}  // namespace longca
