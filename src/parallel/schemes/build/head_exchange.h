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

/// The tensors that a rank computes on: [rows of its CP rank, its heads]. With one member per CP
/// rank they are the caller's. With several they are buffers, one per part, and an all-to-all among
/// the members exchanges [own rows, all heads] for [all rows, own heads]
/// (S. A. Jacobs et al., "DeepSpeed Ulysses", 2023).
class HeadExchange {
 public:
  HeadExchange(const ParallelProblem& problem, const Grid& grid, const HeadLayout& layout, int rank,
               PlanWriter& writer);

  /// All rows and heads of a part; the first call makes its buffer.
  Region held(HeadPart part);
  /// Fills the parts' buffers from the caller's tensors, padding too, with an exchange for each
  /// list of parts. All own parts are copied beside the first: beside attention, which occupies
  /// every SM until it ends, a copy would wait for that end and hold up the exchanges behind it.
  void bring_in(std::span<const std::vector<HeadPart>> exchanges, int step);
  /// Returns results to the caller's tensors, without padding. end_pass copies the own parts.
  void send_out(std::span<const HeadPart> parts, int step);
  /// Copies the own parts of all results of the pass, beside its last exchange.
  void end_pass();
  /// Sums dk and dv of a group that several members hold: the owner of each row adds the members'
  /// `partials` (float32, [tokens of the CP rank, heads of the group], without padding).
  void add_up(std::span<const std::pair<TensorRole, Region>> partials, int group, int step);

  /// Records in the plan where the results of this role lie.
  void place(TensorRole role);

 private:
  Region external(TensorRole role);
  Range heads_of(HeadPart part, int member) const;
  /// A member's rows, with its padding or without.
  std::vector<MemberRun> runs(int member, bool pads) const;
  /// `Move` is the direction: the caller's rows are sent and the held ones received, or vice versa.
  template <typename Move>
  void exchange(std::span<const HeadPart> parts, int step, Move&& move);
  /// The copies of the own part, in that direction.
  template <typename Move>
  std::vector<Copy> own_copies(std::span<const HeadPart> parts, Move&& move);

  const ParallelProblem& problem_;
  const Grid& grid_;
  const HeadLayout& layout_;
  PlanWriter& writer_;
  int cp_rank_;
  int member_;
  Shard shard_;                          ///< of the CP rank
  Shard own_;                            ///< of this rank
  std::map<TensorRole, int> externals_;  ///< buffers of the caller's tensors
  /// Buffers of the held parts, by role and index.
  std::map<std::pair<TensorRole, int>, int> parts_;
  struct LateCopy {
    Copy copy;
    int step;
  };
  std::vector<LateCopy> late_copies_;
};

}  // namespace longca
