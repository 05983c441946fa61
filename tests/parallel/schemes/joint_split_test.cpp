// Where magi divides rows in place of keys, and what its plans are like then.
#include "parallel/schemes/build/joint_split.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "parallel/schemes/build/coverage.h"
#include "parallel/schemes/build/cutter.h"
#include "parallel/schemes/random_problem.h"

namespace longca::testing {
namespace {

template <typename Kind>
std::size_t count(const std::vector<Op>& ops) {
  return static_cast<std::size_t>(std::ranges::count_if(
      ops, [](const Op& op) { return std::holds_alternative<Kind>(op.what); }));
}

/// Of 8K tokens per rank, heads 64:8 of 128 dimensions.
ParallelProblem problem_of_mask(const char* mask, int ranks) {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = ranks * std::int64_t{8192};
  spec.lengths = "prolong64k";
  spec.seed = 42;
  GeneratedMask generated = generate_mask(spec);
  ParallelProblem problem =
      problem_of(std::move(generated.mask), std::move(generated.lengths), 64, 8, ranks);
  problem.problem.head_dim = 128;
  problem.shard = ShardKind::balanced;
  return problem;
}

bool is_external(const RankPlan& plan, const Region& region) {
  return plan.buffers[static_cast<std::size_t>(region.buffer)].external;
}

/// One call per row, which writes where the result belongs: nothing is merged, cleared, added to or
/// rounded but the gradients of keys, in one pass each.
void expect_rows_computed_once(const RankPlan& plan) {
  Coverage forward, backward;
  for (const Op& op : plan.forward) {
    const auto* attend = std::get_if<Attend>(&op.what);
    if (attend == nullptr) continue;
    EXPECT_TRUE(attend->first && is_external(plan, attend->o));
    EXPECT_EQ(forward.add(attend->q.tokens), std::vector<Range>{attend->q.tokens});
  }
  for (const Op& op : plan.backward) {
    const auto* gradients = std::get_if<AttendBackward>(&op.what);
    if (gradients == nullptr) continue;
    EXPECT_TRUE(gradients->first_dq && is_external(plan, gradients->dq));
    EXPECT_EQ(backward.add(gradients->q.tokens), std::vector<Range>{gradients->q.tokens});
  }
  EXPECT_EQ(forward.rows(), std::vector<Range>({{0, 8192}}));
  EXPECT_EQ(backward.rows(), std::vector<Range>({{0, 8192}}));
  EXPECT_EQ(count<Clear>(plan.forward) + count<Convert>(plan.forward), 0);
  EXPECT_EQ(count<Convert>(plan.backward) + count<Add>(plan.backward), 0);
}

TEST(JointSplit, RowsOfPackedDocumentsAreWorkedOnOnce) {
  for (const int ranks : {2, 4}) {
    const ParallelProblem problem = problem_of_mask("causal_document", ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      SCOPED_TRACE(std::to_string(rank) + " of " + std::to_string(ranks));
      expect_rows_computed_once(find_scheme("magi").plan(problem, rank));
    }
  }
}

/// Nearly all rows see the keys of others there: these had better travel while own ones are
/// computed on.
TEST(JointSplit, KeysAreDividedWhereAllRowsSeeThoseOfOthers) {
  for (const char* mask : {"full", "causal"}) {
    for (const int ranks : {2, 4}) {
      const ParallelProblem problem = problem_of_mask(mask, ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        const RankPlan plan = find_scheme("magi").plan(problem, rank);
        const bool merges = std::ranges::any_of(plan.forward, [](const Op& op) {
          const auto* attend = std::get_if<Attend>(&op.what);
          return attend != nullptr && !attend->first;
        });
        EXPECT_TRUE(merges) << mask << ", rank " << rank << " of " << ranks;
      }
    }
  }
}

/// Rows 10 to 20 and 50 to 60 of 100 see keys of the other half; the first ones also own keys
/// 0 to 40, the others 50 to 60.
ParallelProblem told_problem(std::int64_t min_gap) {
  std::vector<MaskSlice> slices = {
      {0, 10, 0, 10, MaskSliceType::causal},     {10, 20, 0, 40, MaskSliceType::full},
      {10, 20, 100, 130, MaskSliceType::full},   {20, 50, 20, 50, MaskSliceType::causal},
      {50, 60, 50, 60, MaskSliceType::causal},   {50, 60, 150, 151, MaskSliceType::full},
      {60, 100, 60, 100, MaskSliceType::causal}, {100, 200, 100, 200, MaskSliceType::causal}};
  ParallelProblem problem = problem_of(Mask::from_slices(200, 200, std::move(slices)), {}, 8, 4, 2);
  problem.min_gap = min_gap;
  return problem;
}

std::optional<JointSplit> split_of(const ParallelProblem& problem) {
  const Shard shard = Grid(problem, {}).cp_rank_shard(0);
  return choose_joint_split(problem, shard, SeenKeys(problem.mask),
                            {{{100, 130}, {150, 151}}, 0, 4});
}

TEST(JointSplit, IsMadeOfExactRanges) {
  const auto split = split_of(told_problem(30));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->forward.before, (std::vector<Range>{{20, 50}, {60, 100}}));
  EXPECT_EQ(split->backward.before, (std::vector<Range>{{20, 50}}));
  EXPECT_EQ(split->backward.after, (std::vector<Range>{{60, 100}}));
  for (const JointSplit::Rows& rows : {split->forward, split->backward}) {
    EXPECT_EQ(rows.joint, (std::vector<Range>{{0, 20}, {50, 60}}));
  }
  // Keys 40 to 50 are seen by no joint row, but are fewer than two copies are worth.
  EXPECT_EQ(split->own_keys, (std::vector<Range>{{0, 60}}));
}

TEST(JointSplit, IsNotMadeAtShorterGaps) {
  EXPECT_EQ(split_of(told_problem(40))->forward.joint, (std::vector<Range>{{0, 60}}));
  EXPECT_FALSE(split_of(told_problem(41)));
}

/// Its rows are computed at once, whatever others ask of it.
TEST(JointSplit, AShardThatSeesNoKeysOfOthersIsOneCall) {
  std::vector<MaskSlice> slices = {{0, 100, 0, 100, MaskSliceType::causal},
                                   {100, 200, 0, 200, MaskSliceType::causal}};
  for (const int min_gap : {0, 1000}) {
    ParallelProblem problem = problem_of(Mask::from_slices(200, 200, slices), {}, 8, 4, 2);
    problem.min_gap = min_gap;
    const RankPlan plan = find_scheme("magi").plan(problem, 0);
    ASSERT_EQ(count<Attend>(plan.forward), 1);
    ASSERT_EQ(count<AttendBackward>(plan.backward), 1);
    EXPECT_EQ(count<Clear>(plan.backward), 0);
    EXPECT_EQ(count<Total>(plan.backward), 2);
    // Gradients from the other rank are on their way while these are computed.
    const auto& last = plan.backward[plan.backward.size() - 3];
    EXPECT_TRUE(std::holds_alternative<AttendBackward>(last.what) && last.after.empty());
  }
}

RC_GTEST_PROP(JointSplit, CoversEachRowOnce, ()) {
  const ParallelProblem problem = random_problem(200);
  const Grid grid(problem, {});
  const Shard shard = grid.cp_rank_shard(uniform(0, problem.ranks));
  const SeenKeys seen(problem.mask);
  std::vector<Range> foreign;
  std::int64_t next = 0;
  const auto leave = [&](std::int64_t end) {
    if (end > next) foreign.push_back({next, end});
  };
  for (const Range own : shard.ranges) {
    leave(own.begin);
    next = own.end;
  }
  leave(problem.mask.k_tokens());
  foreign = common_ranges(seen.by(shard.ranges), foreign);
  const auto split = choose_joint_split(problem, shard, seen, {foreign, uniform(0, 100), 2});
  RC_PRE(split.has_value());
  const auto check = [&](const JointSplit::Rows& rows) {
    Coverage covered;
    for (const auto* ranges : {&rows.before, &rows.joint, &rows.after}) {
      for (const Range range : *ranges) RC_ASSERT(covered.add(range) == std::vector<Range>{range});
    }
    RC_ASSERT(covered.gaps({0, shard.tokens}).empty());
    RC_ASSERT(std::ssize(rows.joint) <= Cutter::kMaxPieces);
  };
  check(split->forward);
  check(split->backward);
}

}  // namespace
}  // namespace longca::testing
