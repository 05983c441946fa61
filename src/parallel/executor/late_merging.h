#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca {

/// The float32 buffers of one pass whose partial results may be merged late: nothing looks at them
/// between the steps that write them and the one Convert that ends what a step wrote. Of o and its
/// lse, or of dq.
class LateMerging {
 public:
  /// `plan` and `ops` outlive this object.
  /// `whole_heads`: only where every step writes all heads, so that its rows have no gaps.
  LateMerging(const RankPlan& plan, const std::vector<Op>& ops, bool whole_heads);
  bool allowed(int buffer) const { return allowed_[static_cast<std::size_t>(buffer)]; }
  /// Whether the result of an allowed buffer has one place in another, which nothing else touches
  /// before its last Convert: steps may then write there.
  bool has_one_place(int buffer) const;

 private:
  struct Uses {
    std::vector<Region> written, converted;
    std::vector<Region> places;  ///< what each of `converted` is converted to
    std::size_t last_op = 0;     ///< the last that converts it
    std::optional<Region>
        lse;  ///< of an o: buffer of its lse, and the head that its head 0 is there
  };
  void forbid(const Region& region) { allowed_[static_cast<std::size_t>(region.buffer)] = false; }
  Uses& uses_of(const Region& region) { return uses_[static_cast<std::size_t>(region.buffer)]; }
  void write(const Region& into, bool first);
  void look_at(std::size_t index);
  void pair(const Region& o, const Region& lse);
  void forbid_unfinished();
  void forbid_shared_lse();

  const RankPlan& plan_;
  const std::vector<Op>& ops_;
  std::vector<bool> allowed_;
  bool whole_heads_;
  std::vector<Uses> uses_;
};

}  // namespace longca
