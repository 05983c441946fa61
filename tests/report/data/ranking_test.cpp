#include "report/data/ranking.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/sample_records.h"

namespace longca::testing {
namespace {

/// Cells of one problem, and their group.
struct Problem {
  /// A cell of 1 TFLOP forward, 2.5 backward.
  void add(const char* kernel, Pass pass, double time_ms, std::optional<double> ci_pct = 0.1) {
    Record record = sample_records()[0];
    record.c.kernel = kernel;
    record.c.pass = pass;
    record.status = {};
    const double work = pass == Pass::forward ? 1 : 2.5;
    record.metrics = {{"time_ms", time_ms}, {"tflops", 1e3 * work / time_ms}};
    if (ci_pct) record.metrics["time_ci_pct"] = *ci_pct;
    records.push_back(record);
  }
  const ViewGroup& group() {
    view = make_view(records);
    return view.sections.at(0).groups.at(0);
  }

  std::vector<Record> records;
  View view;
};

std::vector<std::string> names_of(const Ranking& ranking, bool first) {
  std::vector<std::string> names;
  for (const RankedRow& row : ranking.rows) {
    if (row.is_first == first) names.push_back(row.row->kernel);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST(Ranking, IsByTimeWithTheLeadOverWhoIsNotFirst) {
  Problem problem;
  problem.add("slow", Pass::forward, 20);
  problem.add("fast", Pass::forward, 10);
  problem.add("middle", Pass::forward, 15);
  const Ranking ranking = rank(problem.group(), RankedWork::forward);
  EXPECT_EQ(names_of(ranking, true), (Names{"fast"}));
  EXPECT_EQ(names_of(ranking, false), (Names{"middle", "slow"}));
  EXPECT_EQ(ranking.lead(), 1.5);
  EXPECT_DOUBLE_EQ(ranking.rows[0].tflops, 100);
}

TEST(Ranking, OfSeveralRoundsTiesAreWhatCompareCannotTellApart) {
  Problem problem;
  const auto add = [&](const char* kernel, double time, double spread) {
    problem.add(kernel, Pass::forward, time);
    for (const double share : {0.0, 1.0, -1.0, 0.5, -0.5}) {
      problem.records.back().rounds_ms.push_back({time * (1 + share * spread)});
    }
  };
  add("fastest", 10, 0.002);
  add("noisy", 10.4, 0.1);
  add("steady", 10.3, 0.002);
  const Ranking ranking = rank(problem.group(), RankedWork::forward);
  EXPECT_EQ(names_of(ranking, true), (Names{"fastest", "noisy"}));
  EXPECT_EQ(names_of(ranking, false), (Names{"steady"}));
}

TEST(Ranking, TimesWithinAPercentAreTies) {
  Problem problem;
  problem.add("a", Pass::forward, 10);
  problem.add("b", Pass::forward, 10.09, std::nullopt);
  problem.add("c", Pass::forward, 10.2);
  const Ranking ranking = rank(problem.group(), RankedWork::forward);
  EXPECT_EQ(names_of(ranking, true), (Names{"a", "b"}));
  EXPECT_DOUBLE_EQ(*ranking.lead(), 1.02);
}

TEST(Ranking, SoAreIntervalsThatOverlap) {
  Problem problem;
  problem.add("a", Pass::forward, 10, 2.0);
  problem.add("b", Pass::forward, 10.5, 3.0);
  problem.add("no_interval", Pass::forward, 10.3, std::nullopt);
  const Ranking ranking = rank(problem.group(), RankedWork::forward);
  EXPECT_EQ(names_of(ranking, true), (Names{"a", "b"}));
  EXPECT_DOUBLE_EQ(*ranking.lead(), 1.03);
}

/// The interval of a median reaches as far as one outlier among 7 samples, but upwards alone.
TEST(Ranking, AnOutlierOfASlowKernelMakesNoTie) {
  Problem problem;
  problem.add("fast", Pass::forward, 0.42, 5.0);
  problem.records.back().samples_ms = {0.42, 0.41, 0.42, 0.43, 0.42, 0.41, 0.44};
  problem.add("slow", Pass::forward, 3.4, 290);
  problem.records.back().samples_ms = {3.5, 3.4, 3.3, 3.4, 23, 3.2, 3.6};
  EXPECT_EQ(names_of(rank(problem.group(), RankedWork::forward), true), (Names{"fast"}));
  problem.records[0].samples_ms[6] = 3.3;  // the interval of the fastest reaches the other's
  EXPECT_EQ(names_of(rank(problem.group(), RankedWork::forward), true), (Names{"fast", "slow"}));
}

TEST(Ranking, AStepIsBothPassesOfARow) {
  Problem problem;
  problem.add("forward_only", Pass::forward, 1);
  problem.add("a", Pass::forward, 10, 1.0);
  problem.add("a", Pass::backward, 30, 2.0);
  problem.add("b", Pass::forward, 20);
  problem.add("b", Pass::backward, 20);
  problem.records.back().status = {StatusCode::wrong, "dq"};
  problem.add("c", Pass::forward, 20);
  problem.add("c", Pass::backward, 60);
  const ViewGroup& group = problem.group();
  const Ranking ranking = rank(group, RankedWork::step);
  EXPECT_EQ(names_of(ranking, true), (Names{"a"}));
  EXPECT_EQ(names_of(ranking, false), (Names{"c"}));
  EXPECT_EQ(ranking.rows[0].time_ms, 40);
  EXPECT_DOUBLE_EQ(ranking.rows[0].tflops, 3.5 * 1e3 / 40);
  ASSERT_TRUE(ranking.rows[0].interval);
  EXPECT_DOUBLE_EQ(ranking.rows[0].interval->low, 39.3);
  EXPECT_DOUBLE_EQ(ranking.rows[0].interval->high, 40.7);
  EXPECT_EQ(ranking.lead(), 2.0);
  EXPECT_EQ(names_of(rank(group, RankedWork::forward), true), (Names{"forward_only"}));
}

TEST(Ranking, AMeasuredStepGoesBeforeTheSum) {
  Problem problem;
  problem.add("sum", Pass::forward, 10);
  problem.add("sum", Pass::backward, 30);
  problem.add("measured", Pass::forward, 20);
  problem.add("measured", Pass::backward, 40);
  problem.add("measured", Pass::step, 35);
  problem.add("failed", Pass::forward, 1);
  problem.add("failed", Pass::backward, 1);
  problem.add("failed", Pass::step, 1);
  problem.records.back().status = {StatusCode::oom, "both need more"};
  const ViewGroup& group = problem.group();
  ASSERT_EQ(group.rows.size(), 3U);
  const Ranking ranking = rank(group, RankedWork::step);
  EXPECT_EQ(names_of(ranking, true), (Names{"measured"}));
  EXPECT_EQ(names_of(ranking, false), (Names{"sum"}));
  EXPECT_EQ(ranking.rows[0].time_ms, 35);
  EXPECT_EQ(ranking.rows[0].record->c.pass, Pass::step);
  EXPECT_EQ(ranking.rows[1].record->c.pass, Pass::forward);
  EXPECT_TRUE(problem.view.has(Pass::step));
}

TEST(Ranking, NobodyIsMarkedAlone) {
  Problem problem;
  problem.add("a", Pass::forward, 10);
  problem.add("b", Pass::forward, 5);
  problem.records.back().status = {StatusCode::wrong, "o"};
  const ViewGroup& group = problem.group();
  const Ranking ranking = rank(group, RankedWork::forward);
  EXPECT_EQ(names_of(ranking, true), (Names{"a"}));
  EXPECT_EQ(ranking.next(), nullptr);
  EXPECT_FALSE(ranking.lead());
  for (const ViewRow& row : group.rows) EXPECT_FALSE(ranking.is_marked(row)) << row.kernel;
  EXPECT_TRUE(rank(group, RankedWork::backward).rows.empty());
}

TEST(Ranking, TiesShareTheMark) {
  Problem problem;
  problem.add("a", Pass::forward, 10);
  problem.add("b", Pass::forward, 10.05);
  problem.add("c", Pass::forward, 11);
  const ViewGroup& group = problem.group();
  const PassRankings rankings(group);
  Names marked;
  for (const ViewRow& row : group.rows) {
    if (rankings.is_marked(row, Pass::forward)) marked.push_back(row.kernel);
    EXPECT_FALSE(rankings.is_marked(row, Pass::backward));
  }
  EXPECT_EQ(marked, (Names{"a", "b"}));
}

}  // namespace
}  // namespace longca::testing
