#include "cost/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

namespace longca::cost {
namespace {

std::int64_t end_of(const std::vector<int>& items, int workers) {
  ListSchedule<std::int64_t> schedule(workers);
  for (const int item : items) schedule.add(item);
  return schedule.end();
}

TEST(ListSchedule, GivesEachItemToTheWorkerThatIsFreeFirst) {
  EXPECT_EQ(end_of({}, 2), 0);
  EXPECT_EQ(end_of({5, 1, 1, 1}, 2), 5);
  EXPECT_EQ(end_of({1, 1, 1, 5}, 2), 6);
  EXPECT_EQ(end_of({3, 3, 3}, 3), 3);
}

RC_GTEST_PROP(ListSchedule, IsWithinGrahamsBound, ()) {
  const auto items = *rc::gen::nonEmpty<std::vector<int>>(
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1000)));
  const int workers = *rc::gen::inRange(1, 10);
  const auto sum = std::accumulate(items.begin(), items.end(), std::int64_t{0});
  const auto longest = *std::max_element(items.begin(), items.end());
  const std::int64_t end = end_of(items, workers);
  RC_ASSERT(end >= longest);
  RC_ASSERT(end * workers >= sum);
  RC_ASSERT(end * workers <= sum + std::int64_t{longest} * (workers - 1));
}

TEST(RowSchedule, ExchangesAreCoveredByCallsAroundTheJointOnes) {
  const RowSchedule calls = {.before = 3, .row_terms = 1, .joint = 5, .after = 2};
  EXPECT_DOUBLE_EQ(end_by_rows(calls, {}), 3 + 5 + 2);
  EXPECT_DOUBLE_EQ(end_by_rows(calls, {4, 2}), 3 + 5 + 2);  // row terms cover a part
  EXPECT_DOUBLE_EQ(end_by_rows(calls, {6, 3}), 5 + 5 + 3);
}

TEST(RowSchedule, HalvesOfOwnKeysCoverExchanges) {
  EXPECT_DOUBLE_EQ(end_by_keys(2, 5, {1, 1}), 2 + 5 + 2);
  EXPECT_DOUBLE_EQ(end_by_keys(2, 5, {3, 4}), 3 + 5 + 4);
}

}  // namespace
}  // namespace longca::cost
