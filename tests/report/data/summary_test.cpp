#include "report/data/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "report/sample_records.h"

namespace longca::testing {
namespace {

Record cell(const char* kernel, const char* mask, Pass pass, double time_ms) {
  Record record = sample_records()[0];
  record.c.kernel = kernel;
  record.c.mask = mask;
  record.c.pass = pass;
  record.status = {};
  record.metrics = {{"time_ms", time_ms}, {"tflops", 1 / time_ms}, {"time_ci_pct", 0.1}};
  return record;
}

TEST(Summary, IsTheGeometricMeanOfTheFastestOverTheOwnTime) {
  const std::vector<Record> records = {
      cell("a", "full", Pass::forward, 10), cell("b", "full", Pass::forward, 20),
      cell("a", "causal", Pass::forward, 40), cell("b", "causal", Pass::forward, 10),
      cell("c", "causal", Pass::forward, 10.05)};
  const View view = make_view(records);
  const Summary summary = summarize(view);
  EXPECT_EQ(summary.problems[0], 2);
  EXPECT_FALSE(summary.has(RankedWork::backward));
  EXPECT_FALSE(summary.has(RankedWork::step));
  ASSERT_EQ(summary.rows.size(), 3U);
  const Standing& a = summary.rows[0].at(RankedWork::forward);
  EXPECT_EQ(a.problems, 2);
  EXPECT_EQ(a.first, 1);
  EXPECT_DOUBLE_EQ(a.of_fastest, std::sqrt(1.0 * 0.25));
  EXPECT_DOUBLE_EQ(summary.rows[1].at(RankedWork::forward).of_fastest, std::sqrt(0.5 * 1.0));
  const Standing& c = summary.rows[2].at(RankedWork::forward);
  EXPECT_EQ(c.problems, 1);
  EXPECT_EQ(c.first, 1) << "a tie";
}

TEST(Summary, AProblemOfOneKernelIsNoComparison) {
  const std::vector<Record> records = {cell("a", "full", Pass::forward, 10),
                                       cell("a", "causal", Pass::forward, 10),
                                       cell("b", "causal", Pass::forward, 20)};
  const Summary summary = summarize(make_view(records));
  EXPECT_EQ(summary.problems[0], 1);
  EXPECT_EQ(summary.rows[0].at(RankedWork::forward).problems, 1);
}

TEST(Summary, NoTimeHasNoShare) {
  const std::vector<Record> records = {cell("a", "full", Pass::forward, 0),
                                       cell("b", "full", Pass::forward, 0)};
  const Summary summary = summarize(make_view(records));
  EXPECT_EQ(summary.problems[0], 0);
  EXPECT_EQ(summary.rows[0].at(RankedWork::forward).problems, 0);
}

TEST(Summary, AKernelWithoutABackwardPassIsInNoStep) {
  const std::vector<Record> records = {
      cell("a", "full", Pass::forward, 10), cell("b", "full", Pass::forward, 20),
      cell("c", "full", Pass::forward, 5), cell("a", "full", Pass::backward, 30),
      cell("b", "full", Pass::backward, 20)};
  const Summary summary = summarize(make_view(records));
  EXPECT_EQ(summary.problems[2], 1);
  EXPECT_EQ(summary.rows[2].at(RankedWork::step).problems, 0);
  EXPECT_EQ(summary.rows[0].at(RankedWork::step).first, 1);
  EXPECT_EQ(summary.rows[1].at(RankedWork::step).first, 1);
  EXPECT_DOUBLE_EQ(summary.rows[0].at(RankedWork::forward).of_fastest, 0.5);
}

TEST(Summary, OverRanksASchemeIsJudgedByItsFastestRow) {
  std::vector<Record> records = over_ranks_records();
  const Summary summary = summarize(make_view(records));
  std::vector<std::string> names;
  for (const SummaryRow& row : summary.rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"ulysses", "ring_p2p", "usp"}));
  EXPECT_GT(summary.problems[0], 0);
  for (const SummaryRow& row : summary.rows) {
    EXPECT_LE(row.at(RankedWork::forward).problems, summary.problems[0]);
    EXPECT_LE(row.at(RankedWork::forward).of_fastest, 1);
    EXPECT_GT(row.at(RankedWork::forward).of_fastest, 0);
  }
}

}  // namespace
}  // namespace longca::testing
