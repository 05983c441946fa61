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

/// What one chunk of heads computes in one call on a block of a turn's keys: local rows and keys.
struct Work {
  int block = 0;
  Range rows;
  Range keys;
  int mask = 0;  ///< its number in the plan
  /// Of a JointSplit: behind the joint rows in a backward pass.
  bool late = false;
  /// Of a JointSplit: nothing else adds to the gradients of these keys.
  bool has_keys_alone = false;
};

/// What both passes of a plan are written with.
class PlanParts {
 public:
  PlanParts(const ParallelProblem& problem, const Composition& composition, int rank);
  PlanParts(const PlanParts&) = delete;
  PlanParts& operator=(const PlanParts&) = delete;

  int chunks() const { return static_cast<int>(layout.chunks().size()); }
  int groups() const { return static_cast<int>(layout.groups().size()); }
  int group_of(int chunk) const { return layout.chunks()[static_cast<std::size_t>(chunk)].group; }
  /// Of the forward pass, or the backward pass from begin_backward on.
  const std::vector<Work>& work(int turn, int chunk) const {
    const auto& of_turn = work_[static_cast<std::size_t>(turn)];
    return of_turn[of_turn.size() == 1 ? 0 : static_cast<std::size_t>(chunk)];
  }
  void begin_backward();
  /// Where a result of the CP rank's tokens goes: into the part itself, or a float32 sum of its
  /// own.
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
  void cut(int rank);
  void cut_rows(const JointSplit::Rows& split);

  /// Per turn, and per chunk where masks differ by head.
  std::vector<std::vector<std::vector<Work>>> work_;
  /// Of a JointSplit: cuts its rows. Those that both passes call a kernel on share a mask.
  std::optional<Cutter> row_cutter_;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<Work>> cut_;  ///< by turn, rows
};

/// The rows of a region that its row `rows` are, counted from its first.
Region with_rows(Region region, Range rows);

/// Marks `rows` of results as written. True if none of them was before; else clears those that were
/// not, so that an op can add to all.
bool begins(PlanWriter& writer, Coverage& coverage, Range rows, std::span<const Region> results,
            int step);
/// Clears what no op has written.
void clear_gaps(PlanWriter& writer, const Coverage& coverage, std::span<const Region> results,
                int step);

void write_forward(PlanParts& parts);
void write_backward(PlanParts& parts);

}  // namespace longca
