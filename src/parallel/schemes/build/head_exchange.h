#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "parallel/schemes/build/grid.h"
#include "parallel/schemes/build/head_layout.h"
#include "parallel/schemes/build/plan_writer.h"

namespace longca {

/// A tensor of one chunk of query heads (q, o, lse, dout, dq) or group of KV heads (k, v, dk, dv).
struct HeadPart {
  TensorRole role = TensorRole::q;
  int index = 0;
};

/// The tensors that a rank computes on: its CP rank's rows × its heads. With one member per
/// CP rank they are the caller's own. With several they are buffers, one per part, filled and
/// emptied by all-to-all among the members: a member's rows of all heads against all members' rows
/// of its heads (S. A. Jacobs et al., "DeepSpeed Ulysses", 2023).
class HeadExchange {
 public:
  HeadExchange(const ParallelProblem& problem, const Grid& grid, const HeadLayout& layout, int rank,
               PlanWriter& writer);

  /// All rows and heads of a part. Exists from the first time that it is asked for.
  Region held(HeadPart part);
  /// From the caller's tensors into the parts' buffers, padding too; one exchange for all of them.
  void bring_in(std::span<const HeadPart> parts, int step);
  /// The other way, results: without padding.
  void send_out(std::span<const HeadPart> parts, int step);
  /// The end of dk and dv of a group that several members hold: the owners of the rows add up the
  /// partial results, which lie in `partials` (float32, the CP rank's tokens without padding).
  void add_up(std::span<const std::pair<TensorRole, Region>> partials, int group, int step);

  /// Says in the plan where the results of this role lie.
  void place(TensorRole role);

 private:
  Region external(TensorRole role);
  Range heads_of(HeadPart part, int member) const;
  /// A member's rows, with its padding or without.
  std::vector<MemberRun> runs(int member, bool pads) const;
  /// `Move` says which of the caller's rows and the held ones leave, and which arrive.
  template <typename Move>
  void exchange(std::span<const HeadPart> parts, int step, Move&& move);

  const ParallelProblem& problem_;
  const Grid& grid_;
  const HeadLayout& layout_;
  PlanWriter& writer_;
  int cp_rank_;
  int member_;
  Shard shard_;  ///< of the CP rank
  Shard own_;
  std::map<TensorRole, int> externals_;
  std::map<std::pair<TensorRole, int>, int> parts_;
};

}  // namespace longca
