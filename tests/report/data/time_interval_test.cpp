#include "report/data/time_interval.h"

#include <gtest/gtest.h>

#include "report/data/draws.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

/// One outlier among 7 samples: the interval of their median ends there.
Record disturbed() {
  Record record = sample_records()[0];
  record.samples_ms = {3.5, 3.4, 3.3, 3.4, 23, 3.2, 3.6};
  record.metrics["time_ms"] = 3.4;
  record.metrics["time_ci_pct"] = 290;
  return record;
}

TEST(TimeInterval, OfOneRoundIsThatOfItsSamples) {
  EXPECT_EQ(interval_of_time(disturbed()), (TimeInterval{3.2, 23}));
}

TEST(TimeInterval, IsSymmetricWhereTheSamplesDoNotTell) {
  Record record = disturbed();
  record.metrics["time_ci_pct"] = 25;
  record.metrics["time_ms"] = 4;
  Record rounds = record;
  rounds.rounds_ms = {{3.5, 3.4, 3.3, 3.4}, {23, 3.2, 3.6}};
  EXPECT_EQ(interval_of_time(rounds), (TimeInterval{3, 5}));
  Record mean = record;
  mean.metrics[kDraws] = 2;
  EXPECT_EQ(interval_of_time(mean), (TimeInterval{3, 5}));
  Record without = record;
  without.samples_ms.clear();
  EXPECT_EQ(interval_of_time(without), (TimeInterval{3, 5}));
}

TEST(TimeInterval, StaysAboveZeroAndHoldsTheTime) {
  Record record = disturbed();
  record.metrics["time_ms"] = 3;
  EXPECT_EQ(interval_of_time(record)->low, 3);
  record.samples_ms.clear();
  EXPECT_GT(interval_of_time(record)->low, 0);
  EXPECT_NEAR(interval_of_time(record)->high, 11.7, 1e-9);
}

TEST(TimeInterval, NothingOfTooFewRepetitions) {
  Record record = disturbed();
  record.metrics.erase("time_ci_pct");
  EXPECT_FALSE(interval_of_time(record));
  EXPECT_FALSE(interval_of_time(Record{}));
}

}  // namespace
}  // namespace longca::testing
