#include "bench/run/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/expect_input_error.h"
#include "bench/suite/axes.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

/// One round of a cell with these samples, the middle one being the median.
Record round_of(std::vector<double> samples) {
  Record record;
  record.c.kernel = "flash";
  record.c.mask = "causal";
  record.c.tokens = 1024;
  record.c = canonical(record.c);
  record.metrics = {{"time_ms", samples[1]}, {"tflops", 6 / samples[1]}};
  record.samples_ms = std::move(samples);
  record.stop = "converged";
  return record;
}

TEST(Rounds, JoinsTheSamplesAndRecomputesWhatTheyGive) {
  Record joined = with_round(Record{}, round_of({1, 2, 3}));
  EXPECT_THAT(joined.rounds_ms, ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_FALSE(joined.metrics.contains("time_ci_pct"));
  joined = with_round(joined, round_of({3, 3, 3}));
  EXPECT_THAT(joined.rounds_ms, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(3, 3, 3)));
  EXPECT_THAT(joined.samples_ms, ElementsAre(1, 2, 3, 3, 3, 3));
  EXPECT_EQ(joined.metrics.at("time_ms"), 3);
  EXPECT_DOUBLE_EQ(joined.metrics.at("tflops"), 2);
  EXPECT_GT(joined.metrics.at("time_ci_pct"), 100) << "of rounds that took 2 and 3 ms";
  EXPECT_EQ(rounds_of_record(joined), 2U);
}

TEST(Rounds, ARecordWithoutRoundsIsOne) {
  const Record joined = with_round(round_of({1, 2, 3}), round_of({2, 2, 2}));
  EXPECT_THAT(joined.rounds_ms, ElementsAre(ElementsAre(1, 2, 3), ElementsAre(2, 2, 2)));
  EXPECT_EQ(rounds_of_record(round_of({1, 2, 3})), 1U);
  EXPECT_EQ(rounds_of_record(Record{}), 0U);
}

TEST(Rounds, TheLargestMemoryAndErrorCountAndTheMeanOfTheRest) {
  Record joined;
  for (const double value : {1.0, 3.0, 2.0}) {
    Record round = round_of({1, 1, 1});
    round.metrics["peak_bytes"] = value;
    round.metrics["error_o"] = value;
    round.metrics["plan_ms"] = value;
    if (value == 3) round.stop = "time_limit";
    joined = with_round(joined, round);
  }
  EXPECT_EQ(joined.metrics.at("peak_bytes"), 3);
  EXPECT_EQ(joined.metrics.at("error_o"), 3);
  EXPECT_DOUBLE_EQ(joined.metrics.at("plan_ms"), 2);
  EXPECT_EQ(joined.stop, "time_limit") << "not all rounds have converged";
}

/// A record does not say how many rounds had a metric.
TEST(Rounds, AMeanIsOfAllRoundsOrLeftOut) {
  Record joined;
  for (int number = 1; number <= 3; ++number) {
    Record round = round_of({1, 1, 1});
    if (number != 1) round.metrics["power_w"] = 500;
    if (number != 2) round.metrics["sm_clock_mhz"] = 1980;
    if (number == 1) round.metrics["compile_ms"] = 90;  // the later ones find the compiled kernel
    if (number == 2) round.metrics["temperature_c"] = 60;
    joined = with_round(joined, round);
  }
  EXPECT_FALSE(joined.metrics.contains("power_w"));
  EXPECT_FALSE(joined.metrics.contains("sm_clock_mhz"));
  EXPECT_EQ(joined.metrics.at("compile_ms"), 90);
  EXPECT_EQ(joined.metrics.at("temperature_c"), 60);
  EXPECT_EQ(joined.metrics.at("time_ms"), 1);
}

/// A round of ranks that took `time` ms in all and `compute` without exchanges.
Record round_of_ranks(double time, double compute) {
  Record record = round_of({time, time, time});
  record.metrics["compute_ms"] = compute;
  record.metrics["exposed_comm_ms"] = time - compute;
  return record;
}

TEST(Rounds, ADisturbedRoundMovesNoMedian) {
  Record joined;
  for (const auto& [time, compute] : {std::pair{10.0, 8.0}, {10.1, 8.1}, {60.0, 110.0}}) {
    // As a resumed run reads it.
    joined = parse_records(to_line(joined = with_round(joined, round_of_ranks(time, compute))), "")
                 .records.at(0);
  }
  EXPECT_DOUBLE_EQ(joined.metrics.at("compute_ms"), 8.1);
  EXPECT_NEAR(joined.metrics.at("exposed_comm_ms"), 2, 1e-9) << "the difference of the medians";
  joined = with_round(joined, round_of_ranks(10.2, 8.2));
  EXPECT_DOUBLE_EQ(joined.metrics.at("compute_ms"), 8.15);
  Record failed = round_of_ranks(1, 1);
  failed.status = {StatusCode::crash, "later"};
  EXPECT_TRUE(with_round(joined, failed).more.empty());
}

TEST(Rounds, AMedianIsOfAllRoundsOrLeftOut) {
  const Record without = with_round(round_of_ranks(10, 8), round_of({10, 10, 10}));
  EXPECT_FALSE(without.metrics.contains("compute_ms"));
  EXPECT_TRUE(without.more.empty());
  EXPECT_FALSE(with_round(without, round_of_ranks(10, 8)).metrics.contains("compute_ms"));
}

TEST(Rounds, RecordsThatDoNotListTheirRoundsAreContinued) {
  Record mean = with_round(round_of_ranks(10, 8), round_of_ranks(10, 9));
  for (const char* lists : {"7", "{}", R"({"compute_ms":[1]})", R"({"compute_ms":[1,"x"]})"}) {
    mean.more["rounds_metrics"] = nlohmann::json::parse(lists);
    EXPECT_DOUBLE_EQ(with_round(mean, round_of_ranks(10, 70)).metrics.at("compute_ms"), 8.5);
  }
}

TEST(Rounds, AUsersOwnColumnsAndMetricsStay) {
  Record first = round_of({1, 1, 1});
  first.more["mine"] = "a remark";
  first.metrics["mine"] = 7;
  Record failed = round_of({1, 1, 1});
  failed.status = {StatusCode::crash, "later"};
  failed.samples_ms.clear();
  for (const Record& round : {round_of({1, 2, 3}), failed}) {
    EXPECT_EQ(with_round(first, round).more.at("mine"), "a remark");
  }
  EXPECT_EQ(with_round(first, round_of({1, 2, 3})).metrics.at("mine"), 7);
}

TEST(Rounds, AFailureOfOneIsTheCells) {
  Record failed = round_of({1, 1, 1});
  failed.status = {StatusCode::wrong, "dq"};
  failed.samples_ms.clear();
  const Record joined = with_round(with_round(Record{}, round_of({1, 1, 1})), failed);
  EXPECT_EQ(joined.status.code, StatusCode::wrong);
  EXPECT_TRUE(joined.rounds_ms.empty());
}

TEST(Rounds, EachHasANewOrderThatItsSeedDetermines) {
  std::vector<Case> cases;
  for (int tokens = 1; tokens <= 8; ++tokens) {
    for (const char* kernel : {"flash", "naive"}) {
      Case c = round_of({1, 1, 1}).c;
      c.tokens = tokens;
      c.kernel = kernel;
      cases.push_back(canonical(c));
    }
  }
  const auto keys = [](const std::vector<Case>& list) {
    std::vector<std::string> found;
    for (const Case& c : list) found.push_back(c.key());
    return found;
  };
  const auto first = keys(order_of_round(cases, 7, 0));
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(keys(cases)));
  EXPECT_EQ(first, keys(order_of_round(cases, 7, 0)));
  EXPECT_NE(first, keys(order_of_round(cases, 7, 1)));
  EXPECT_NE(first, keys(order_of_round(cases, 8, 0)));
  const auto ordered = order_of_round(cases, 7, 0);
  for (std::size_t i = 0; i < ordered.size(); i += 2) {
    EXPECT_EQ(ordered[i].problem_key(), ordered[i + 1].problem_key()) << "share a reference";
  }
}

TEST(Rounds, RefusesNumbersThatNoRunCanHave) {
  check_rounds(1);
  check_rounds(kMaxRounds);
  for (const std::int64_t rounds : {0L, -1L, kMaxRounds + 1L}) {
    expect_input_error([&] { check_rounds(rounds); }, "is not from 1 to 1000");
  }
}

}  // namespace
}  // namespace longca::testing
