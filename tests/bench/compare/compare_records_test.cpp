#include "bench/compare/compare_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/expect_input_error.h"
#include "bench/suite/axes.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Record timed_cell(std::int64_t tokens, double time) {
  Record record;
  record.c.kernel = "flash";
  record.c.mask = "causal";
  record.c.tokens = tokens;
  record.c = canonical(record.c);
  record.rounds_ms = {{time, time * 1.001}, {time * 1.001, time}, {time, time * 0.999}};
  for (const auto& round : record.rounds_ms) {
    record.samples_ms.insert(record.samples_ms.end(), round.begin(), round.end());
  }
  record.metrics = {{"time_ms", time}};
  record.env = {{"cpu", {{"model", "Example"}, {"cores_usable", 2}}}, {"commit", "aaa"}};
  return record;
}

Record failed_cell(std::int64_t tokens, StatusCode code) {
  Record record = timed_cell(tokens, 1);
  record.status = {code, "a reason"};
  record.metrics.clear();
  record.samples_ms.clear();
  record.rounds_ms.clear();
  return record;
}

Comparison compare_lists(const std::vector<Record>& base, const std::vector<Record>& next,
                         const CompareOptions& options = {}) {
  return compare_records(base, next, options);
}

std::vector<std::string> verdict_lines(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const CellComparison& cell : comparison.cells) {
    lines.push_back(std::to_string(cell.c.tokens) + " " + std::string(to_string(cell.verdict)));
  }
  return lines;
}

TEST(CompareRecords, CountsCellsThatRanBesideOtherWork) {
  std::vector<Record> base = {timed_cell(1, 1), timed_cell(2, 1), timed_cell(3, 1),
                              failed_cell(4, StatusCode::oom)};
  std::vector<Record> next = base;
  base[0].metrics["host_load"] = 0.6;
  next[1].metrics["host_load"] = 1.5;
  next[2].metrics["host_load"] = 0.4;
  next[3].metrics["host_load"] = 2;
  base.push_back(timed_cell(5, 1));
  base.back().c.device = "cuda";
  base.back().metrics["host_load"] = 2;
  next.push_back(base.back());
  EXPECT_EQ(compare_lists(base, next).busy, 2U);
}

TEST(CompareRecords, NamesEveryVerdictWorstFirst) {
  const Comparison comparison = compare_lists(
      {timed_cell(1, 1), timed_cell(2, 1), timed_cell(3, 1), failed_cell(4, StatusCode::oom),
       timed_cell(5, 1), timed_cell(6, 1), timed_cell(8, 1), failed_cell(9, StatusCode::oom),
       failed_cell(10, StatusCode::oom)},
      {timed_cell(1, 1), timed_cell(2, 0.5), failed_cell(3, StatusCode::wrong), timed_cell(4, 1),
       timed_cell(5, 1.2), timed_cell(7, 1), timed_cell(8, 1.5), failed_cell(9, StatusCode::oom),
       failed_cell(10, StatusCode::crash)});
  EXPECT_THAT(verdict_lines(comparison),
              ElementsAre("3 broken", "8 slower", "5 slower", "10 unclear", "6 only_base",
                          "7 only_new", "4 fixed", "2 faster", "1 same", "9 same"));
  EXPECT_TRUE(comparison.has_regression());
  EXPECT_EQ(comparison.counts.size(), std::size(kVerdicts));
  EXPECT_EQ(comparison.counts.at(CellVerdict::slower), 2U);
  EXPECT_EQ(comparison.cells.front().reason, "a reason");
}

TEST(CompareRecords, OnlySlowerAndBrokenAreRegressions) {
  const Comparison better = compare_lists({timed_cell(1, 1), failed_cell(2, StatusCode::oom)},
                                          {timed_cell(1, 0.5), timed_cell(2, 1)});
  EXPECT_FALSE(better.has_regression());
  EXPECT_TRUE(
      compare_lists({timed_cell(1, 1)}, {failed_cell(1, StatusCode::crash)}).has_regression());
}

TEST(CompareRecords, TheNewestRecordOfAKeyCounts) {
  const Comparison comparison = compare_lists(
      {timed_cell(1, 9), timed_cell(1, 1)}, {failed_cell(1, StatusCode::crash), timed_cell(1, 1)});
  EXPECT_THAT(verdict_lines(comparison), ElementsAre("1 same"));
}

TEST(CompareRecords, TakesSamplesAsOneRoundWhereThereAreNoRounds) {
  Record base = timed_cell(1, 1);
  Record next = timed_cell(1, 1.03);
  EXPECT_THAT(verdict_lines(compare_lists({base}, {next})), ElementsAre("1 slower"));
  next.rounds_ms.clear();
  const Comparison comparison = compare_lists({base}, {next});
  EXPECT_THAT(verdict_lines(comparison), ElementsAre("1 unclear"));
  EXPECT_EQ(comparison.single_rounds, 1U);
}

TEST(CompareRecords, TellsMemoryErrorAndPlanTimeThatChanged) {
  Record base = timed_cell(1, 1);
  Record next = timed_cell(1, 1);
  base.metrics.merge(std::map<std::string, double>{
      {"peak_bytes", 1e9}, {"error_o", 1e-3}, {"error_dq", 1e-3}, {"plan_ms", 1}});
  next.metrics.merge(std::map<std::string, double>{
      {"peak_bytes", 2e9}, {"error_o", 1.1e-3}, {"error_dq", 9e-3}, {"plan_ms", 30}});
  EXPECT_THAT(compare_lists({base}, {next}).cells.at(0).changes,
              ElementsAre(MetricChange{"peak_bytes", 1e9, 2e9}, MetricChange{"plan_ms", 1, 30},
                          MetricChange{"error_dq", 1e-3, 9e-3}));
}

TEST(CompareRecords, ComparesClockCyclesWhereBothClocksAreKnown) {
  Record base = timed_cell(1, 1);
  Record next = timed_cell(1, 1.1);
  base.metrics["sm_clock_mhz"] = 1980;
  EXPECT_FALSE(compare_lists({base}, {next}).cells.at(0).clock_ratio);
  next.metrics["sm_clock_mhz"] = 1800;
  EXPECT_NEAR(compare_lists({base}, {next}).cells.at(0).clock_ratio.value(), 1.0, 1e-12);
}

TEST(CompareRecords, NamesWhatDiffersInTheEnvironment) {
  Record next = timed_cell(1, 1);
  next.env.own()["commit"] = "bbb";
  next.env.own()["libraries"] = {{"fmt", "9"}};
  next.env.own()["gpus"] = nlohmann::json::array({{{"model", "H100"}}});
  const Comparison comparison = compare_lists({timed_cell(1, 1)}, {next});
  EXPECT_THAT(comparison.environment, ElementsAre(EnvironmentChange{"card", "", "H100"},
                                                  EnvironmentChange{"commit", "aaa", "bbb"},
                                                  EnvironmentChange{"library fmt", "", "9"}));
}

TEST(CompareRecords, RefusesAnotherProcessorUnlessTold) {
  Record next = timed_cell(1, 1);
  next.env.own()["cpu"]["model"] = "Other";
  expect_input_error([&] { compare_lists({timed_cell(1, 1)}, {next}); },
                     "BASE was measured on Example, 2 cores and NEW on Other, 2 cores");
  EXPECT_EQ(compare_lists({timed_cell(1, 1)}, {next}, {.across = true}).cells.size(), 1U);
}

TEST(CompareRecords, FilesWithoutACommonCellHaveVerdictsAndANote) {
  const Comparison comparison =
      compare_lists({timed_cell(1, 1)}, {timed_cell(2, 1), timed_cell(3, 1)});
  EXPECT_THAT(verdict_lines(comparison), ElementsAre("1 only_base", "2 only_new", "3 only_new"));
  EXPECT_THAT(comparison.notes, ElementsAre("BASE has 1 cell and NEW has 2, and none is in both"));
  EXPECT_FALSE(comparison.has_regression());
  EXPECT_THAT(compare_lists({timed_cell(1, 1)}, {timed_cell(1, 1)}).notes, IsEmpty());
  EXPECT_THAT(
      compare_lists({failed_cell(1, StatusCode::oom)}, {failed_cell(1, StatusCode::oom)}).notes,
      IsEmpty());
}

TEST(CompareRecords, CellsWithoutSamplesAreUnclear) {
  Record bare = timed_cell(1, 1);
  bare.rounds_ms.clear();
  bare.samples_ms.clear();
  const Comparison unclear = compare_lists({bare}, {timed_cell(1, 1)});
  EXPECT_THAT(verdict_lines(unclear), ElementsAre("1 unclear"));
  EXPECT_THAT(unclear.notes, ElementsAre(HasSubstr("has samples in both")));
  EXPECT_FALSE(unclear.has_regression());
  const Comparison broken =
      compare_lists({bare, timed_cell(2, 1)}, {bare, failed_cell(2, StatusCode::wrong)});
  EXPECT_THAT(verdict_lines(broken), ElementsAre("2 broken", "1 unclear"));
  EXPECT_THAT(broken.notes, IsEmpty());
}

}  // namespace
}  // namespace longca::testing
