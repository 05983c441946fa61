#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "parallel/executor/op_analysis.h"

namespace longca::test {
namespace {

/// Buffers, all of 8 tokens and 2 heads.
enum : int { kDout, kQ, kK, kV, kO, kLse, kDq, kDk, kDv, kOther };

Region rows_of(int buffer, Range tokens = {0, 8}) {
  return {buffer, tokens, {0, 2}};
}

Op receive(const std::vector<Region>& landing, std::vector<int> after = {}) {
  Exchange exchange;
  for (const Region& region : landing) exchange.receives.push_back({1, region});
  return {.what = exchange, .after = std::move(after), .lane = Lane::communication};
}

Op copy(Region from, Region to, std::vector<int> after = {}) {
  return {.what = Copy{from, to}, .after = std::move(after)};
}

Op attend(Range rows, std::vector<int> after = {}) {
  const AttendBackward what{rows_of(kDout, rows), rows_of(kQ, rows), rows_of(kK),
                            rows_of(kV),          rows_of(kO, rows), rows_of(kLse, rows),
                            rows_of(kDq, rows),   rows_of(kDk),      rows_of(kDv)};
  return {.what = what, .after = std::move(after)};
}

using Ops = std::vector<int>;

TEST(EarlyRows, AreThoseOfTheOpThatWaitsAndOfTheLater) {
  const EarlyRows early = find_early_rows(
      {receive({rows_of(kK), rows_of(kV)}), attend({0, 2}), attend({2, 5}, {0}), attend({5, 8})});
  EXPECT_EQ(early.before, 2U);
  EXPECT_EQ(early.ops, (Ops{2, 3}));
}

TEST(EarlyRows, AreThereWhereACopyWaits) {
  const EarlyRows early = find_early_rows(
      {receive({rows_of(kOther)}), copy(rows_of(kOther), rows_of(kK), {0}), attend({0, 8})});
  EXPECT_EQ(early.before, 1U);
  EXPECT_EQ(early.ops, Ops{2});
}

TEST(EarlyRows, AreNotOfRowsThatArrive) {
  for (const int role : {kDout, kO, kLse}) {
    const EarlyRows early = find_early_rows(
        {receive({rows_of(role, {0, 4})}), attend({0, 4}, {0}), attend({4, 8}, {0})});
    EXPECT_EQ(early.ops, Ops{2}) << "buffer " << role;
  }
}

TEST(EarlyRows, AreNotOfRowsThatAreWrittenBehindTheWait) {
  for (const int role : {kDout, kO, kLse}) {
    const auto with = [&](std::vector<int> after) {
      return find_early_rows({receive({rows_of(kK)}),
                              copy(rows_of(kOther, {0, 4}), rows_of(role, {0, 4}), after),
                              attend({0, 4}, {0}), attend({4, 8})});
    };
    EXPECT_EQ(with({0}).ops, Ops{3}) << "buffer " << role;
    // Before the wait the compute lane has made the copy when it comes there.
    EXPECT_EQ(with({}).ops, (Ops{2, 3})) << "buffer " << role;
  }
}

/// On the lane of the exchanges it may still be under way.
TEST(EarlyRows, AreNotOfRowsThatACopyBesideAnExchangeWrites) {
  Op beside = copy(rows_of(kOther), rows_of(kDout, {0, 4}));
  beside.lane = Lane::communication;
  const EarlyRows early =
      find_early_rows({receive({rows_of(kK)}), beside, attend({0, 4}, {1}), attend({4, 8})});
  EXPECT_EQ(early.before, 2U);
  EXPECT_EQ(early.ops, Ops{3});
}

TEST(EarlyRows, AreNoneWhereNothingWaits) {
  EXPECT_TRUE(find_early_rows({}).ops.empty());
  EXPECT_TRUE(find_early_rows({attend({0, 4}), attend({4, 8}, {0})}).ops.empty());
  EXPECT_TRUE(find_early_rows({receive({rows_of(kK)}), attend({0, 8})}).ops.empty());
  EXPECT_TRUE(find_early_rows({receive({}), attend({0, 8}, {0})}).ops.empty())
      << "an exchange without messages";
}

}  // namespace
}  // namespace longca::test
