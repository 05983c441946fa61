// When partial results are merged late: the queue's schedule played on sets of steps instead of
// numbers, and which buffers may be merged late at all.
#include "parallel/executor/merge_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "parallel/executor/late_merging.h"

namespace longca::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MergeQueue, MergesAllPartsOfARowAtItsEnd) {
  MergeQueue queue(4);
  EXPECT_EQ(queue.add({0, 10}).slot, 0);
  EXPECT_EQ(queue.add({5, 10}).slot, 1);
  EXPECT_EQ(queue.slots(), 2);
  EXPECT_THAT(queue.finish({0, 12}),
              ElementsAre(MergeCall{{0, 5}, {{0, {0, 10}}}, false},
                          MergeCall{{5, 10}, {{0, {0, 10}}, {1, {5, 10}}}, false},
                          MergeCall{{10, 12}, {}, false}));
}

TEST(MergeQueue, PartsOfDifferentRowsShareASlot) {
  MergeQueue queue(4);
  EXPECT_EQ(queue.add({0, 5}).slot, 0);
  EXPECT_EQ(queue.add({5, 9}).slot, 0);
  EXPECT_EQ(queue.slots(), 1);
}

TEST(MergeQueue, MakesRoomWhenAllSlotsAreTaken) {
  MergeQueue queue(2);
  queue.add({0, 4});
  queue.add({2, 6});
  const MergeQueue::Added added = queue.add({3, 4});
  EXPECT_EQ(added.slot, 0);
  EXPECT_THAT(added.before, ElementsAre(MergeCall{{0, 2}, {{0, {0, 4}}}, false},
                                        MergeCall{{2, 4}, {{0, {0, 4}}, {1, {2, 6}}}, false},
                                        MergeCall{{4, 6}, {{1, {2, 6}}}, false}));
  EXPECT_THAT(queue.finish({3, 5}),
              ElementsAre(MergeCall{{3, 4}, {{0, {3, 4}}}, true}, MergeCall{{4, 5}, {}, true}));
}

/// A buffer's rows as the sets of parts that they have in them.
class Played {
 public:
  explicit Played(int slots, std::int64_t rows)
      : slots_(static_cast<std::size_t>(slots),
               std::vector<std::set<int>>(static_cast<std::size_t>(rows))),
        accumulator_(static_cast<std::size_t>(rows)) {}

  std::set<int>& slot(int slot, std::int64_t row) {
    return slots_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)];
  }
  std::set<int>& accumulator(std::int64_t row) {
    return accumulator_[static_cast<std::size_t>(row)];
  }
  /// What a call makes of one of its rows. A part must not count twice.
  std::set<int> merged(const MergeCall& call, std::int64_t row) {
    std::set<int> sum = call.accumulator ? accumulator(row) : std::set<int>{};
    std::size_t count = sum.size();
    for (const WaitingPart& part : call.parts) {
      sum.merge(std::set(slot(part.slot, row)));
      ++count;
    }
    EXPECT_EQ(sum.size(), count);
    return sum;
  }

 private:
  std::vector<std::vector<std::set<int>>> slots_;
  std::vector<std::set<int>> accumulator_;
};

TEST(MergeQueue, EveryPartCountsOnce) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto rows = static_cast<std::int64_t>(1 + random() % 40);
    const int slots = static_cast<int>(1 + random() % 4);
    MergeQueue queue(slots);
    Played played(slots, rows);
    std::vector<std::set<int>> expected(static_cast<std::size_t>(rows));
    for (int part = 0; part < static_cast<int>(random() % 12); ++part) {
      const auto begin = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows));
      const auto size =
          static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(rows - begin));
      const Range range{begin, begin + size};
      const MergeQueue::Added added = queue.add(range);
      for (const MergeCall& call : added.before) {
        for (std::int64_t r = call.rows.begin; r < call.rows.end; ++r) {
          played.accumulator(r) = played.merged(call, r);
        }
      }
      ASSERT_LT(added.slot, slots);
      for (std::int64_t r = range.begin; r < range.end; ++r) {
        played.slot(added.slot, r) = {part};
        expected[static_cast<std::size_t>(r)].insert(part);
      }
    }
    std::int64_t next = 0;
    for (const MergeCall& call : queue.finish({0, rows})) {
      ASSERT_EQ(call.rows.begin, next);
      next = call.rows.end;
      for (std::int64_t r = call.rows.begin; r < call.rows.end; ++r) {
        ASSERT_EQ(played.merged(call, r), expected[static_cast<std::size_t>(r)]) << "row " << r;
      }
    }
    ASSERT_EQ(next, rows);
  }
}

/// A pass with two steps of 8 rows that are merged and rounded: q, k, v, sum of o, lse, o.
struct TwoSteps {
  TwoSteps() {
    const auto add = [&](TensorRole role, bool float32) {
      plan.buffers.push_back(
          {.name = {}, .role = role, .tokens = 8, .heads = 2, .float32 = float32});
    };
    for (const TensorRole role : {TensorRole::q, TensorRole::k, TensorRole::v}) add(role, false);
    add(TensorRole::o, true);
    add(TensorRole::lse, false);
    add(TensorRole::o, false);
    ops = {{attend({0, 8}, true), {}}, {attend({4, 8}, false), {}}, {convert({0, 8}), {}}};
  }
  Region rows(int buffer, Range range) const { return {buffer, range, {0, 2}}; }
  Attend attend(Range range, bool first) const {
    return {
        rows(0, range), rows(1, {0, 8}), rows(2, {0, 8}), rows(kSum, range), rows(kLse, range), 0,
        first};
  }
  Convert convert(Range range) const { return {rows(kSum, range), rows(5, range)}; }
  bool allowed() const { return LateMerging(plan, ops).allowed(kSum); }

  static constexpr int kSum = 3;
  static constexpr int kLse = 4;
  RankPlan plan;
  std::vector<Op> ops;
};

TEST(LateMerging, IsForSumsThatAreRoundedOnce) {
  EXPECT_TRUE(TwoSteps().allowed());
  TwoSteps cleared;
  cleared.ops.insert(cleared.ops.begin(), {Clear{cleared.rows(TwoSteps::kSum, {0, 8})}, {}});
  EXPECT_TRUE(cleared.allowed());
}

TEST(LateMerging, IsNotForSumsThatOthersSee) {
  const auto forbidden = [](auto&& change) {
    TwoSteps steps;
    change(steps);
    return !steps.allowed();
  };
  const auto sum = [](const TwoSteps& s, Range r) { return s.rows(TwoSteps::kSum, r); };
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.ops.pop_back(); }));  // never rounded
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.ops.back().what = s.convert({0, 7}); }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.ops.push_back({s.attend({0, 2}, false), {}}); }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.ops[1].what = s.attend({4, 8}, true); }));
  EXPECT_TRUE(forbidden([&](TwoSteps& s) {
    s.ops.insert(s.ops.begin() + 1, {Clear{sum(s, {0, 2})}, {}});
  }));
  EXPECT_TRUE(forbidden([&](TwoSteps& s) {
    s.ops.insert(s.ops.begin() + 1, {Copy{sum(s, {0, 2}), sum(s, {4, 6})}, {}});
  }));
  EXPECT_TRUE(forbidden([&](TwoSteps& s) {
    Exchange sends;
    sends.sends = {{1, s.rows(TwoSteps::kLse, {0, 1})}};
    s.ops.insert(s.ops.begin() + 1, {sends, {}});
  }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.plan.buffers[TwoSteps::kSum].kept = true; }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.plan.buffers[TwoSteps::kSum].float32 = false; }));
  EXPECT_TRUE(forbidden([&](TwoSteps& s) {
    s.plan.results = {{.role = TensorRole::o, .region = sum(s, {0, 8}), .tokens = {}, .heads = {}}};
  }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { std::get<Attend>(s.ops[1].what).lse.tokens = {0, 4}; }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { std::get<Attend>(s.ops[1].what).o.heads = {0, 1}; }));
}

}  // namespace
}  // namespace longca::test
