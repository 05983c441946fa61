#include "report/data/draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "report/csv.h"
#include "report/markdown.h"
#include "report/sample_records.h"
#include "report/table.h"
#include "report/view.h"

namespace longca::testing {
namespace {

/// A cell of one seed: `flops` in TFLOP, `time_ms`.
Record draw_of(std::uint64_t seed, double flops, double time_ms) {
  Record record = sample_records()[0];
  record.c.seed = seed;
  record.status = {};
  record.metrics = {{"time_ms", time_ms},
                    {"tflops", 1e3 * flops / time_ms},
                    {"time_ci_pct", 1.0},
                    {"peak_bytes", 100.0 * static_cast<double>(seed)},
                    {"error_o", static_cast<double>(seed) * 1e-3}};
  record.samples_ms = {time_ms, time_ms};
  record.stop = seed == 43 ? "time_limit" : "converged";
  return record;
}

TEST(Draws, ThroughputIsTheSumOfFlopsOverTheSumOfTimes) {
  const Record records[] = {draw_of(42, 1, 10), draw_of(43, 4, 20), draw_of(44, 1, 30)};
  const std::vector<Record> averaged = average_draws(records);
  ASSERT_EQ(averaged.size(), 1U);
  const auto& metrics = averaged[0].metrics;
  EXPECT_DOUBLE_EQ(metrics.at("tflops"), 6e3 / 60);  // not the mean of 100, 200 and 33.3
  EXPECT_DOUBLE_EQ(metrics.at("time_ms"), 20);
  EXPECT_DOUBLE_EQ(metrics.at("time_ci_pct"), std::sqrt(100 + 400 + 900) / 60);
  EXPECT_EQ(metrics.at("draws"), 3);
  const double mean = (100 + 200 + 100.0 / 3) / 3;
  const double variance =
      (std::pow(100 - mean, 2) + std::pow(200 - mean, 2) + std::pow(100.0 / 3 - mean, 2)) / 2;
  EXPECT_NEAR(metrics.at("draws_spread_pct"), 100 * std::sqrt(variance) / mean, 1e-9);
  EXPECT_EQ(metrics.at("peak_bytes"), 4400);
  EXPECT_DOUBLE_EQ(metrics.at("error_o"), 0.044);
  EXPECT_EQ(averaged[0].samples_ms.size(), 6U);
  EXPECT_EQ(averaged[0].stop, "time_limit");
  EXPECT_EQ(axis_text(find_axis("seed"), averaged[0]), "42,43,44");
}

TEST(Draws, OtherCellsStayApart) {
  std::vector<Record> records = {draw_of(42, 1, 10), draw_of(43, 1, 10), draw_of(42, 1, 10)};
  records[1].c.tokens *= 2;
  records[2].env.own()["commit"] = "another";
  const std::vector<Record> averaged = average_draws(records);
  ASSERT_EQ(averaged.size(), 3U);
  for (const Record& record : averaged) EXPECT_FALSE(record.metrics.contains("draws"));
  EXPECT_EQ(axis_text(find_axis("seed"), averaged[0]), "42");
}

TEST(Draws, OneThatFailedLeavesNoSpeed) {
  std::vector<Record> records = {draw_of(42, 1, 10), draw_of(43, 1, 10)};
  records[1].status = {StatusCode::wrong, "dq is off"};
  records[1].metrics = {{"area", 1.0}};
  records[1].samples_ms.clear();
  const Record averaged = average_draws(records).at(0);
  EXPECT_EQ(averaged.status.code, StatusCode::wrong);
  EXPECT_EQ(averaged.status.reason, "seed 43: dq is off");
  EXPECT_FALSE(averaged.metrics.contains("tflops"));
  EXPECT_TRUE(averaged.samples_ms.empty());
}

TEST(Draws, WhatAllRefuseIsSaidOnce) {
  std::vector<Record> records = {draw_of(42, 1, 10), draw_of(43, 1, 10)};
  for (Record& record : records) {
    record.status = Status::unsupported("no backward pass");
    record.metrics.clear();
  }
  EXPECT_EQ(average_draws(records).at(0).status.reason, "no backward pass");
}

TEST(Draws, AreOneRowOfEveryView) {
  const std::vector<Record> records = {draw_of(42, 1, 10), draw_of(43, 4, 20)};
  const SplitRecords split = split_records(records);
  ASSERT_EQ(split.single.size(), 1U);
  const View view = make_view(split.single);
  EXPECT_EQ(view.sections.size(), 1U);
  EXPECT_EQ(view.cells(), 1);
  std::ostringstream table;
  print_table(table, records, {.width = 100, .color = false});
  EXPECT_NE(table.str().find("spread"), std::string::npos) << table.str();
  EXPECT_NE(table.str().find("47.1%"), std::string::npos) << table.str();
  EXPECT_NE(table.str().find("seed 42,43"), std::string::npos) << table.str();
  std::ostringstream markdown;
  write_markdown(markdown, records);
  EXPECT_NE(markdown.str().find("| spread |"), std::string::npos);
  EXPECT_NE(markdown.str().find("47.1%"), std::string::npos);
  std::ostringstream csv;
  write_csv(csv, records);
  EXPECT_NE(csv.str().find(",draws,draws_spread_pct,"), std::string::npos);
  EXPECT_NE(csv.str().find("\"42,43\""), std::string::npos);
}

}  // namespace
}  // namespace longca::testing
