#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "parallel/executor/op_analysis.h"
#include "parallel/schemes/scheme.h"

namespace longca::test {
namespace {

/// Buffers 0 to 3 of k, 4 of lse.
RankPlan plan_of() {
  RankPlan plan;
  for (int i = 0; i < 4; ++i) plan.buffers.push_back({"k", TensorRole::k, 100, 2});
  plan.buffers.push_back({"lse", TensorRole::lse, 100, 2});
  return plan;
}

Op copy(int from, Range rows, int to, Range into) {
  return {.what = Copy{{from, rows, {0, 2}}, {to, into, {0, 2}}}, .after = {}};
}

std::vector<int> firsts(const std::vector<Op>& ops) {
  const OpRuns runs(plan_of(), ops);
  std::vector<int> firsts;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) firsts.push_back(runs.first(i));
  return firsts;
}

TEST(OpRuns, AreConsecutiveCopies) {
  const Op clear{.what = Clear{{3, {0, 10}, {0, 2}}}, .after = {}};
  EXPECT_EQ(
      firsts({copy(0, {0, 5}, 1, {0, 5}), copy(0, {0, 5}, 1, {5, 10}), copy(2, {0, 5}, 1, {10, 15}),
              clear, copy(0, {0, 5}, 3, {0, 5}), copy(0, {5, 10}, 3, {5, 10})}),
      (std::vector<int>{0, 0, 0, 3, 4, 4}));
}

TEST(OpRuns, EndWhereOneTouchesWhatAnotherWrites) {
  const Op first = copy(0, {0, 5}, 1, {0, 5});
  EXPECT_EQ(firsts({first, copy(1, {4, 8}, 2, {0, 4})})[1], 1) << "reads what the first writes";
  EXPECT_EQ(firsts({first, copy(2, {0, 4}, 1, {4, 8})})[1], 1) << "writes the same";
  EXPECT_EQ(firsts({first, copy(2, {0, 4}, 0, {4, 8})})[1], 1) << "writes what the first reads";
  EXPECT_EQ(firsts({first, copy(1, {5, 8}, 2, {0, 3})})[1], 0) << "other rows";
  Op other_heads = copy(1, {0, 5}, 2, {0, 5});
  std::get<Copy>(other_heads.what).from.heads = {2, 4};
  EXPECT_EQ(firsts({first, other_heads})[1], 0);
}

Region random_region() {
  const auto tokens = *rc::gen::inRange<std::int64_t>(0, 40);
  const auto heads = *rc::gen::inRange<std::int64_t>(0, 2);
  return {*rc::gen::inRange(0, 4),
          {tokens, tokens + *rc::gen::inRange<std::int64_t>(1, 6)},
          {heads, heads + 1}};
}

RC_GTEST_PROP(OpRuns, HaveNoTwoOpsThatConflictAndEndOnlyThere, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 40);
  std::vector<Op> ops;
  while (ops.size() < count) {
    ops.push_back({.what = Copy{random_region(), random_region()}, .after = {}});
  }
  const std::vector<int> first = firsts(ops);
  int begin = 0;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const OpRegions regions = regions_of(ops[static_cast<std::size_t>(i)]);
    const bool conflicts = std::any_of(ops.begin() + begin, ops.begin() + i, [&](const Op& before) {
      return conflict(regions_of(before), regions);
    });
    if (conflicts) begin = i;
    RC_ASSERT(first[static_cast<std::size_t>(i)] == begin);
  }
}

TEST(OpRuns, EndWhereOneWaitsForMore) {
  Op first = copy(0, {0, 5}, 1, {0, 5});
  Op second = copy(0, {0, 5}, 2, {0, 5});
  second.after = {7};
  EXPECT_EQ(firsts({first, second})[1], 1);
  first.after = {3, 7};
  EXPECT_EQ(firsts({first, second})[1], 0);
  second.lane = Lane::communication;
  EXPECT_EQ(firsts({first, second})[1], 1);
  EXPECT_EQ(firsts({second, second})[1], 1) << "exchanges may end in between";
}

Op total(int from, Range rows, int to) {
  return {.what = Total{{{{from, rows, {0, 2}}, 0}}, {to, {0, 10}, {0, 2}}}, .after = {}};
}

TEST(OpRuns, AreOfOneKind) {
  EXPECT_EQ(firsts({copy(0, {0, 5}, 1, {0, 5}), total(0, {5, 10}, 2), total(0, {10, 15}, 3)}),
            (std::vector<int>{0, 1, 1}));
}

/// A part may be added to: two totals of the same rows cannot be made at once.
TEST(OpRuns, OfTotalsHaveTheirOwnParts) {
  EXPECT_EQ(firsts({total(0, {0, 5}, 1), total(0, {4, 8}, 2)})[1], 1);
  EXPECT_EQ(firsts({total(0, {0, 5}, 1), total(2, {0, 5}, 1)})[1], 1) << "writes the same";
  Op first = total(0, {0, 5}, 1);
  first.after = {7};
  EXPECT_EQ(firsts({first, total(2, {0, 5}, 3)})[1], 0);
  EXPECT_EQ(firsts({total(2, {0, 5}, 3), first})[1], 1) << "waits for more";
}

/// The end of a backward pass is one launch.
TEST(OpRuns, JoinTheTotalsOfDkAndDv) {
  Problem whole{.tokens_q = 512, .tokens_k = 512, .heads_q = 8, .heads_k = 2, .head_dim = 64};
  whole.backward = true;
  const Mask mask = Mask::from_slices(512, 512, {{0, 512, 0, 512, MaskSliceType::causal}});
  const ParallelProblem problem{.problem = whole, .mask = mask, .lengths = {}, .ranks = 2};
  const RankPlan plan = find_scheme("magi").plan(problem, 0);
  const OpRuns runs(plan, plan.backward);
  int totals = 0, launches = 0;
  for (int i = 0; i < std::ssize(plan.backward); ++i) {
    if (!std::holds_alternative<Total>(plan.backward[static_cast<std::size_t>(i)].what)) continue;
    ++totals;
    launches += runs.first(i) == i ? 1 : 0;
  }
  EXPECT_EQ(totals, 2);
  EXPECT_EQ(launches, 1);
}

TEST(OpRuns, LeaveOutLse) {
  const Op lse = copy(4, {0, 5}, 4, {10, 15});
  EXPECT_EQ(firsts({copy(0, {0, 5}, 1, {0, 5}), lse, lse, copy(0, {0, 5}, 2, {0, 5})}),
            (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace longca::test
