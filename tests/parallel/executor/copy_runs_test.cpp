#include "parallel/executor/copy_runs.h"

#include <gtest/gtest.h>

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
  const CopyRuns runs(plan_of(), ops);
  std::vector<int> firsts;
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) firsts.push_back(runs.first(i));
  return firsts;
}

TEST(CopyRuns, AreConsecutiveCopies) {
  const Op clear{.what = Clear{{3, {0, 10}, {0, 2}}}, .after = {}};
  EXPECT_EQ(
      firsts({copy(0, {0, 5}, 1, {0, 5}), copy(0, {0, 5}, 1, {5, 10}), copy(2, {0, 5}, 1, {10, 15}),
              clear, copy(0, {0, 5}, 3, {0, 5}), copy(0, {5, 10}, 3, {5, 10})}),
      (std::vector<int>{0, 0, 0, 3, 4, 4}));
}

TEST(CopyRuns, EndWhereOneTouchesWhatAnotherWrites) {
  const Op first = copy(0, {0, 5}, 1, {0, 5});
  EXPECT_EQ(firsts({first, copy(1, {4, 8}, 2, {0, 4})})[1], 1) << "reads what the first writes";
  EXPECT_EQ(firsts({first, copy(2, {0, 4}, 1, {4, 8})})[1], 1) << "writes the same";
  EXPECT_EQ(firsts({first, copy(2, {0, 4}, 0, {4, 8})})[1], 1) << "writes what the first reads";
  EXPECT_EQ(firsts({first, copy(1, {5, 8}, 2, {0, 3})})[1], 0) << "other rows";
  Op other_heads = copy(1, {0, 5}, 2, {0, 5});
  std::get<Copy>(other_heads.what).from.heads = {2, 4};
  EXPECT_EQ(firsts({first, other_heads})[1], 0);
}

TEST(CopyRuns, EndWhereOneWaitsForMore) {
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

TEST(CopyRuns, LeaveOutLse) {
  const Op lse = copy(4, {0, 5}, 4, {10, 15});
  EXPECT_EQ(firsts({copy(0, {0, 5}, 1, {0, 5}), lse, lse, copy(0, {0, 5}, 2, {0, 5})}),
            (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace longca::test
