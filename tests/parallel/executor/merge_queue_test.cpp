// When partial results are merged late: the queue's schedule played on sets of steps instead of
// numbers, and which buffers may be merged late at all.
#include "parallel/executor/merge_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "parallel/executor/late_merging.h"

namespace longca::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Range kHeads{0, 2};

Box rows(std::int64_t begin, std::int64_t end) {
  return {{begin, end}, kHeads};
}

TEST(MergeQueue, MergesAllPartsOfARowAtItsEnd) {
  MergeQueue queue(4);
  EXPECT_EQ(queue.add(rows(0, 10)).slot, 0);
  EXPECT_EQ(queue.add(rows(5, 10)).slot, 1);
  EXPECT_EQ(queue.slots(), 2);
  EXPECT_THAT(queue.finish(rows(0, 12)),
              ElementsAre(MergeCall{rows(0, 5), {{0, rows(0, 10)}}, false},
                          MergeCall{rows(5, 10), {{0, rows(0, 10)}, {1, rows(5, 10)}}, false},
                          MergeCall{rows(10, 12), {}, false}));
}

TEST(MergeQueue, PartsThatDoNotMeetShareASlot) {
  MergeQueue queue(4);
  EXPECT_EQ(queue.add(rows(0, 5)).slot, 0);
  EXPECT_EQ(queue.add(rows(5, 9)).slot, 0);
  EXPECT_EQ(queue.add({{0, 9}, {2, 4}}).slot, 0);
  EXPECT_EQ(queue.slots(), 1);
}

TEST(MergeQueue, MakesRoomWhenAllSlotsAreTaken) {
  MergeQueue queue(2);
  queue.add(rows(0, 4));
  queue.add(rows(2, 6));
  const MergeQueue::Added added = queue.add(rows(3, 4));
  EXPECT_EQ(added.slot, 0);
  EXPECT_THAT(added.before,
              ElementsAre(MergeCall{rows(0, 2), {{0, rows(0, 4)}}, false},
                          MergeCall{rows(2, 4), {{0, rows(0, 4)}, {1, rows(2, 6)}}, false},
                          MergeCall{rows(4, 6), {{1, rows(2, 6)}}, false}));
  EXPECT_THAT(queue.finish(rows(3, 5)), ElementsAre(MergeCall{rows(3, 4), {{0, rows(3, 4)}}, true},
                                                    MergeCall{rows(4, 5), {}, true}));
}

using Joint = MergeQueue::Joint;

TEST(MergeQueue, JoinsAPartToTheOneThatIsThere) {
  MergeQueue queue(3);
  EXPECT_EQ(queue.joint(rows(0, 10)), std::nullopt) << "nothing there";
  queue.add(rows(0, 10));
  EXPECT_EQ(queue.joint(rows(2, 8)), (Joint{0, rows(2, 8)}));
  EXPECT_EQ(queue.joint(rows(8, 12)), (Joint{0, rows(8, 10)}));
  EXPECT_EQ(queue.joint(rows(10, 12)), std::nullopt);
  queue.join(rows(8, 12), {0, rows(8, 10)});
  EXPECT_THAT(queue.finish(rows(0, 14)),
              ElementsAre(MergeCall{rows(0, 8), {{0, rows(0, 10)}}, false},
                          MergeCall{rows(8, 10), {{0, rows(0, 10)}}, false},
                          MergeCall{rows(10, 12), {{0, rows(8, 12)}}, false},
                          MergeCall{rows(12, 14), {}, false}));
  EXPECT_EQ(queue.slots(), 1);
  EXPECT_EQ(queue.joint(rows(5, 12)), (Joint{0, rows(5, 12)})) << "two parts beside each other";
}

TEST(MergeQueue, JoinsHeadsOfWhichSomeHaveAPart) {
  MergeQueue queue(2);
  queue.add({{0, 8}, {0, 2}});
  const Box all{{0, 8}, {0, 4}};
  EXPECT_EQ(queue.joint(all), (Joint{0, {{0, 8}, {0, 2}}}));
  queue.join(all, *queue.joint(all));
  EXPECT_EQ(queue.joint({{0, 8}, {2, 4}}), (Joint{0, {{0, 8}, {2, 4}}}));
}

TEST(MergeQueue, JoinsNothingWhereTwoPartsMeetOrHeldRowsHaveAGap) {
  MergeQueue queue(2);
  queue.add(rows(0, 4));
  queue.add(rows(6, 8));
  EXPECT_EQ(queue.joint(rows(0, 8)), std::nullopt) << "a gap";
  queue.add(rows(2, 7));
  EXPECT_EQ(queue.joint(rows(1, 3)), std::nullopt) << "two parts of some rows";
  EXPECT_EQ(queue.joint(rows(4, 6)), (Joint{1, rows(4, 6)}));
  EXPECT_EQ(queue.joint(rows(4, 8)), std::nullopt) << "two slots";
  queue.add(rows(6, 7));  // the third of its row: all are merged into the accumulator
  EXPECT_EQ(queue.joint(rows(4, 6)), std::nullopt) << "the accumulator holds it";
}

/// The parts that each head of each row of a buffer has in it.
class Played {
 public:
  Played(int slots, std::int64_t row_count, std::int64_t heads)
      : heads_(heads),
        slots_(static_cast<std::size_t>(slots),
               std::vector<std::set<int>>(static_cast<std::size_t>(row_count * heads))),
        accumulator_(static_cast<std::size_t>(row_count * heads)) {}

  template <typename Body>
  void each(const Box& box, Body&& body) const {
    for (std::int64_t r = box.rows.begin; r < box.rows.end; ++r) {
      for (std::int64_t h = box.heads.begin; h < box.heads.end; ++h) {
        body(static_cast<std::size_t>(r * heads_ + h));
      }
    }
  }
  std::set<int>& slot(int slot, std::size_t at) {
    return slots_[static_cast<std::size_t>(slot)][at];
  }
  std::set<int>& accumulator(std::size_t at) { return accumulator_[at]; }
  /// What a call makes of one of its places. A part must not count twice.
  std::set<int> merged(const MergeCall& call, std::size_t at) {
    std::set<int> sum = call.accumulator ? accumulator(at) : std::set<int>{};
    std::size_t count = sum.size();
    for (const WaitingPart& part : call.parts) {
      count += slot(part.slot, at).size();
      sum.merge(std::set(slot(part.slot, at)));
    }
    EXPECT_EQ(sum.size(), count);
    return sum;
  }

 private:
  std::int64_t heads_;
  std::vector<std::vector<std::set<int>>> slots_;
  std::vector<std::set<int>> accumulator_;
};

Range random_range(std::int64_t end, std::mt19937& random) {
  const auto below = [&](std::int64_t limit) {
    return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random);
  };
  const std::int64_t begin = below(end);
  return {begin, begin + 1 + below(end - begin)};
}

TEST(MergeQueue, EveryPartCountsOnce) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto row_count = static_cast<std::int64_t>(1 + random() % 40);
    const auto heads = static_cast<std::int64_t>(1 + random() % 3);
    const int slots = static_cast<int>(1 + random() % 4);
    MergeQueue queue(slots);
    Played played(slots, row_count, heads);
    std::vector<std::set<int>> expected(static_cast<std::size_t>(row_count * heads));
    for (int part = 0; part < static_cast<int>(random() % 12); ++part) {
      const Box box{random_range(row_count, random), random_range(heads, random)};
      if (const auto joint = queue.joint(box); joint && random() % 2 == 0) {
        played.each(box, [&](std::size_t at) {
          std::set<int>& slot = played.slot(joint->slot, at);
          if (expected[at].empty()) slot.clear();  // what it held has been merged, or nothing has
          slot.insert(part);
          expected[at].insert(part);
        });
        queue.join(box, *joint);
        continue;
      }
      const MergeQueue::Added added = queue.add(box);
      for (const MergeCall& call : added.before) {
        played.each(call.box,
                    [&](std::size_t at) { played.accumulator(at) = played.merged(call, at); });
      }
      ASSERT_LT(added.slot, slots);
      played.each(box, [&](std::size_t at) {
        played.slot(added.slot, at) = {part};
        expected[at].insert(part);
      });
    }
    std::vector<std::set<int>> result(expected.size(), {-1});
    for (const MergeCall& call : queue.finish({{0, row_count}, {0, heads}})) {
      played.each(call.box, [&](std::size_t at) { result[at] = played.merged(call, at); });
    }
    ASSERT_EQ(result, expected);
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
  Region region(int buffer, Range range) const { return {buffer, range, {0, 2}}; }
  Attend attend(Range range, bool first) const {
    return {region(0, range),
            region(1, {0, 8}),
            region(2, {0, 8}),
            region(kSum, range),
            region(kLse, range),
            0,
            first};
  }
  Convert convert(Range range) const { return {region(kSum, range), region(5, range)}; }
  bool allowed(bool whole_heads = false) const {
    return LateMerging(plan, ops, whole_heads).allowed(kSum);
  }

  static constexpr int kSum = 3;
  static constexpr int kLse = 4;
  RankPlan plan;
  std::vector<Op> ops;
};

TEST(LateMerging, IsForSumsThatAreRoundedOnce) {
  EXPECT_TRUE(TwoSteps().allowed());
  TwoSteps cleared;
  cleared.ops.insert(cleared.ops.begin(), {Clear{cleared.region(TwoSteps::kSum, {0, 8})}, {}});
  EXPECT_TRUE(cleared.allowed());
}

TEST(LateMerging, TakesStepsOfSomeHeadsUnlessTheKernelTakesNoGaps) {
  TwoSteps half;
  auto& step = std::get<Attend>(half.ops[1].what);
  step.q.heads = step.o.heads = step.lse.heads = {1, 2};
  EXPECT_TRUE(half.allowed());
  EXPECT_FALSE(half.allowed(true));
}

TEST(LateMerging, JoinsTwoStepsOfARowButNotOneOfThree) {
  TwoSteps steps;
  const auto joined = [&](Range range, bool whole) {
    const LateMerging late(steps.plan, steps.ops, false);
    MergeQueue queue(4);
    queue.add(rows(0, 6));
    return late.join(queue, steps.region(TwoSteps::kSum, range), whole).has_value();
  };
  EXPECT_TRUE(joined({4, 6}, true));
  EXPECT_FALSE(joined({4, 8}, true)) << "some rows have no part";
  EXPECT_TRUE(joined({4, 8}, false));
  EXPECT_FALSE(joined({6, 8}, false)) << "none has";
  steps.ops.insert(steps.ops.begin() + 2, {steps.attend({0, 5}, false), {}});
  EXPECT_FALSE(joined({4, 6}, true)) << "row 4 has a third step";
  EXPECT_TRUE(joined({5, 6}, true));
  EXPECT_FALSE(joined({5, 8}, false)) << "it would take rows 6 and 7 of the slot";
}

TEST(LateMerging, IsNotForSumsThatOthersSee) {
  const auto forbidden = [](auto&& change) {
    TwoSteps steps;
    change(steps);
    return !steps.allowed();
  };
  const auto sum = [](const TwoSteps& s, Range r) { return s.region(TwoSteps::kSum, r); };
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
    sends.sends = {{1, s.region(TwoSteps::kLse, {0, 1})}};
    s.ops.insert(s.ops.begin() + 1, {sends, {}});
  }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.plan.buffers[TwoSteps::kSum].kept = true; }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { s.plan.buffers[TwoSteps::kSum].float32 = false; }));
  EXPECT_TRUE(forbidden([&](TwoSteps& s) {
    s.plan.results = {{.role = TensorRole::o, .region = sum(s, {0, 8}), .tokens = {}, .heads = {}}};
  }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) { std::get<Attend>(s.ops[1].what).lse.tokens = {0, 4}; }));
  EXPECT_TRUE(forbidden([](TwoSteps& s) {
    std::get<Attend>(s.ops[1].what).lse.heads = {1, 2};  // of its o: both
  }));
}

}  // namespace
}  // namespace longca::test
