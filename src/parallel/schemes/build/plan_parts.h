#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "parallel/schemes/build/build_plan.h"
#include "parallel/schemes/build/context_exchange.h"
#include "parallel/schemes/build/cutter.h"
#include "parallel/schemes/build/head_exchange.h"

namespace longca {

/// One kernel call of a chunk of heads on a block of a step's keys; rows and keys are numbered in
/// the CP rank's shard and in the block.
struct Work {
  int block = 0;
  Range rows;
  Range keys;
  int mask = 0;  ///< index into RankPlan::masks
  /// JointSplit, backward pass: computed after the joint rows.
  bool late = false;
  /// JointSplit: no other call or rank adds to the gradients of these keys.
  bool has_keys_alone = false;
};

/// State that the forward and the backward pass of a plan share while they are written.
class PlanParts {
 public:
  PlanParts(const ParallelProblem& problem, const Composition& composition, int rank);
  PlanParts(const PlanParts&) = delete;
  PlanParts& operator=(const PlanParts&) = delete;

  int chunks() const { return static_cast<int>(layout.chunks().size()); }
  int groups() const { return static_cast<int>(layout.groups().size()); }
  /// The chunk's first query head, numbered among all of the problem's.
  int first_head(int chunk) const {
    const HeadChunk& of_chunk = layout.chunks()[static_cast<std::size_t>(chunk)];
    return static_cast<int>(layout.q_heads(member_, of_chunk).begin);
  }
  int group_of(int chunk) const { return layout.chunks()[static_cast<std::size_t>(chunk)].group; }
  /// Calls of the forward pass; from begin_backward on, of the backward pass.
  const std::vector<Work>& work(int step, int chunk) const {
    const auto& of_step = work_[static_cast<std::size_t>(step)];
    return of_step[of_step.size() == 1 ? 0 : static_cast<std::size_t>(chunk)];
  }
  void begin_backward();
  /// Where a result of the CP rank's tokens is written: the part's buffer, or a new float32 one.
  Region result(HeadPart part, bool float32);

  const ParallelProblem& problem;
  const Grid grid;
  const HeadLayout layout;
  const Shard shard;  ///< of the CP rank
  PlanWriter writer;
  HeadExchange heads;
  std::unique_ptr<ContextExchange> context;

 private:
  std::int64_t min_gap(std::int64_t heads_q) const;
  void cut();
  void cut_rows(const JointSplit::Rows& split);

  int member_;  ///< this rank's number in its CP rank
  /// [step][chunk], or [step][0] where all chunks have the same mask.
  std::vector<std::vector<std::vector<Work>>> work_;
  /// JointSplit only. calls_on_rows_, by step and rows, lets both passes share masks.
  std::optional<Cutter> row_cutter_;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<Work>> calls_on_rows_;
};

/// Marks `rows` of results as written. True if all were unwritten, so that the op may overwrite;
/// else clears the unwritten ones, so that it can add to all.
bool begins(PlanWriter& writer, Coverage& coverage, Range rows, std::span<const Region> results,
            int step);
/// Clears the rows that no op has written.
void clear_gaps(PlanWriter& writer, const Coverage& coverage, std::span<const Region> results,
                int step);

void write_forward(PlanParts& parts);
void write_backward(PlanParts& parts);

}  // namespace longca
