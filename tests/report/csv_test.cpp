#include "report/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "bench/record/metrics.h"
#include "bench/suite/axes.h"
#include "report/golden.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

std::string csv(std::span<const Record> records) {
  std::ostringstream out;
  write_csv(out, records);
  return out.str();
}

/// A reader of RFC 4180 of its own.
std::vector<std::vector<std::string>> parse(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else if (c == '"') {
        quoted = false;
      } else {
        field += c;
      }
    } else if (c == '"') {
      EXPECT_TRUE(field.empty()) << "a quote inside an unquoted field";
      quoted = true;
    } else if (c == ',' || c == '\r') {
      rows.back().push_back(std::exchange(field, ""));
    } else if (c == '\n') {
      rows.emplace_back();
    } else {
      field += c;
    }
  }
  EXPECT_TRUE(rows.back().empty() && field.empty()) << "the last line has no end";
  rows.pop_back();
  return rows;
}

std::size_t column(const std::vector<std::string>& titles, const std::string& name) {
  const auto found = std::find(titles.begin(), titles.end(), name);
  EXPECT_NE(found, titles.end()) << name;
  return static_cast<std::size_t>(found - titles.begin());
}

TEST(Csv, Golden) {
  expect_golden(csv(sample_records()), "records.csv");
}

TEST(Csv, OverRanksGolden) {
  expect_golden(csv(over_ranks_records()), "ranks.csv");
}

TEST(Csv, HasAColumnForEveryAxisAndMetric) {
  const auto rows = parse(csv(sample_records()));
  for (const Axis& axis : axis_table()) column(rows[0], axis.name);
  for (const MetricInfo& metric : metric_table()) column(rows[0], std::string(metric.name));
  EXPECT_EQ(rows.size(), sample_records().size() + 1);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
}

TEST(Csv, SaysWhichAreFirstAsTablesDo) {
  std::vector<Record> records;
  for (const auto& [kernel, ms] :
       {std::pair("naive", 1.0), {"flash", 1.005}, {"block_sparse", 1.1}}) {
    Record& record = records.emplace_back(sample_records()[0]);
    record.c.kernel = kernel;
    record.metrics["time_ms"] = ms;
    record.samples_ms = std::vector<double>(9, ms);
  }
  const auto rows = parse(csv(records));
  const std::size_t first = column(rows[0], "first");
  EXPECT_EQ(rows[1][first], "1");
  EXPECT_EQ(rows[2][first], "1");
  EXPECT_EQ(rows[3][first], "");
  // Nothing to be faster than; and a result that is wrong.
  EXPECT_EQ(parse(csv(std::span(records).first(1)))[1][first], "");
  records[0].status = {StatusCode::wrong, "off"};
  EXPECT_EQ(parse(csv(records))[1][first], "");
  EXPECT_EQ(parse(csv(records))[2][first], "1");
}

TEST(Csv, KeepsEveryDigit) {
  std::vector<Record> records = {sample_records()[0]};
  records[0].metrics["time_ms"] = 0.1 + 0.2;
  const auto rows = parse(csv(records));
  EXPECT_EQ(std::stod(rows[1][column(rows[0], "time_ms")]), 0.1 + 0.2);
}

TEST(Csv, WhatWasNotMeasuredIsEmpty) {
  std::vector<Record> records = {sample_records()[0]};
  records[0].metrics.erase("error_lse");
  const auto rows = parse(csv(records));
  EXPECT_EQ(rows[1][column(rows[0], "error_lse")], "");
}

TEST(Csv, ShowsMetricsOfNewerPrograms) {
  std::vector<Record> records = {sample_records()[0]};
  ASSERT_EQ(find_metric("of_tomorrow"), nullptr);
  records[0].metrics["of_tomorrow"] = 4096;
  const auto rows = parse(csv(records));
  EXPECT_EQ(rows[1][column(rows[0], "of_tomorrow")], "4096");
}

TEST(Csv, TextsSurviveInOneLineAndNeverBecomeFormulas) {
  std::vector<Record> records = {sample_records()[0]};
  for (const std::string text : {"=1+1", "+1", "-1", "@SUM(A1)"}) {
    records[0].status = {StatusCode::crash, text};
    const auto rows = parse(csv(records));
    EXPECT_EQ(rows[1][column(rows[0], "reason")], "'" + text);
  }
  for (const std::string text : {"a,b", "say \"no\"", "1 = 2", ""}) {
    records[0].status = {StatusCode::crash, text};
    const auto rows = parse(csv(records));
    EXPECT_EQ(rows[1][column(rows[0], "reason")], text);
  }
  records[0].status = {StatusCode::crash, "\t=1\r\n\033[2J\u202e\xff"};
  const auto rows = parse(csv(records));
  EXPECT_EQ(rows[1][column(rows[0], "reason")], "\\t=1\\r\\n\\x1b[2J\\u202e\\xff");
}

}  // namespace
}  // namespace longca::testing
