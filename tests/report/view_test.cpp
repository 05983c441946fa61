#include "report/view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "report/sample_records.h"

namespace longca::testing {
namespace {

TEST(View, MasksComeInTheTablesOrderAndLengthsAscend) {
  std::vector<Record> records = sample_records();
  std::reverse(records.begin(), records.end());
  const View view = make_view(records);
  ASSERT_EQ(view.sections.size(), 1U);
  std::vector<std::string> groups;
  for (const ViewGroup& group : view.sections[0].groups) {
    groups.push_back(group.mask + ' ' + format_tokens(group.tokens));
  }
  EXPECT_EQ(groups,
            (std::vector<std::string>{"full 1K", "full 4K", "sliding_window_causal 1K",
                                      "sliding_window_causal 4K", "causal_document 1K",
                                      "causal_document 4K", "block_sparse 1K", "block_sparse 4K"}));
}

TEST(View, UnknownMasksComeLast) {
  std::vector<Record> records = sample_records();
  records[0].c.mask = "a_mask_of_tomorrow";
  const View view = make_view(records);
  EXPECT_EQ(view.sections[0].groups.back().mask, "a_mask_of_tomorrow");
}

TEST(View, FilesOfTheUsersOwnHaveShortNames) {
  std::vector<Record> records = sample_records();
  const auto names = [&](const std::string& first, const std::string& second) {
    records[0].c.mask = first;
    records[1].c.mask = second;
    const std::vector<Record> shown = split_records(records).single;
    return std::pair(shown.at(0).c.mask, shown.at(1).c.mask);
  };
  const std::string one = "m.json-0123456789abcdef";
  const std::string other = "m.json-fedcba9876543210";
  EXPECT_EQ(names(one, one), (std::pair<std::string, std::string>("m.json", "m.json")));
  EXPECT_EQ(names(one, other), std::pair(one, other)) << "two files of one name";
  const std::string full = "full-0123456789abcdef";
  EXPECT_EQ(names(one, full), (std::pair<std::string, std::string>("m.json", full)));
  for (Record& record : records) record.c.lengths = "d.txt-0123456789abcdef";
  EXPECT_EQ(split_records(records).single.at(0).c.lengths, "d.txt");
}

TEST(View, EveryRecordIsInExactlyOnePlace) {
  const std::vector<Record> records = sample_records();
  const View view = make_view(records);
  std::vector<const Record*> seen;
  for (const ViewGroup& group : view.sections[0].groups) {
    for (const ViewRow& row : group.rows) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        if (row.pass(pass) == nullptr) continue;
        EXPECT_EQ(row.pass(pass)->c.pass, pass);
        EXPECT_EQ(row.pass(pass)->c.kernel, row.kernel);
        EXPECT_EQ(row.pass(pass)->c.mask, group.mask);
        seen.push_back(row.pass(pass));
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), records.size());
  EXPECT_EQ(view.cells(), static_cast<int>(records.size()));
}

TEST(View, ACellThatLacksAnAxisIsNotTakenForOneThatHasIt) {
  std::vector<Record> records = {sample_records()[0], sample_records()[0]};
  records[1].c.window = 7;
  const View view = make_view(records);
  ASSERT_EQ(view.sections.size(), 2U);
  EXPECT_TRUE(view.sections[0].setting.empty());
  EXPECT_EQ(view.sections[1].setting, (AxisTexts{{"window", "7"}}));
}

Record on_gpu(const char* model, const char* commit, double tflops) {
  Record record = sample_records()[0];
  record.c.device = "cuda";
  record.env = {{"gpus", nlohmann::json::array({{{"model", model}}})},
                {"gpu_driver", "570.1"},
                {"version", "0.2.0"},
                {"commit", commit}};
  record.metrics["tflops"] = tflops;
  return record;
}

TEST(View, CellsOfTwoMachinesAreNeverOneNorCompared) {
  const std::vector<Record> records = {on_gpu("H200", "abc", 2), on_gpu("H100", "abc", 1)};
  const std::vector<Record> single = split_records(records).single;
  ASSERT_EQ(single.size(), 2U);
  const View view = make_view(single);
  ASSERT_EQ(view.sections.size(), 2U);
  EXPECT_EQ(view.sections[0].setting, (AxisTexts{{"machine", "H200, driver 570.1"}}));
  EXPECT_EQ(view.sections[1].setting, (AxisTexts{{"machine", "H100, driver 570.1"}}));
  EXPECT_EQ(view.sections[1].groups[0].rows[0].pass(Pass::forward), &single[1]);
}

TEST(View, ACaseMeasuredByTwoBuildsIsTwo) {
  const std::vector<Record> records = {on_gpu("H200", "abc", 2), on_gpu("H200", "def", 1)};
  const std::vector<Record> single = split_records(records).single;
  ASSERT_EQ(single.size(), 2U);
  const View view = make_view(single);
  ASSERT_EQ(view.sections.size(), 2U);
  EXPECT_EQ(view.sections[0].setting, (AxisTexts{{"build", "0.2.0, commit abc"}}));
}

TEST(View, ACaseMeasuredOnTwoHostsWithTheSameCardIsTwo) {
  std::vector<Record> records = {on_gpu("H200", "abc", 2), on_gpu("H200", "abc", 1)};
  records[0].env.own()["cpu"] = {{"model", "A"}, {"cores_usable", 8}};
  records[1].env.own()["cpu"] = {{"model", "B"}, {"cores_usable", 8}};
  const std::vector<Record> single = split_records(records).single;
  ASSERT_EQ(single.size(), 2U);
  const View view = make_view(single);
  ASSERT_EQ(view.sections.size(), 2U);
  EXPECT_EQ(view.sections[0].setting, (AxisTexts{{"host", "A, 8 cores, H200 (driver 570.1)"}}));
  EXPECT_EQ(view.sections[1].setting, (AxisTexts{{"host", "B, 8 cores, H200 (driver 570.1)"}}));
}

TEST(View, CasesOfDifferentBuildsAreComparedAndTheBuildsNamed) {
  std::vector<Record> records = {on_gpu("H200", "abc", 2), on_gpu("H200", "def", 1)};
  records[1].c.kernel = "another";
  const View view = make_view(records);
  ASSERT_EQ(view.sections.size(), 1U);
  EXPECT_EQ(view.sections[0].groups[0].rows.size(), 2U);
  EXPECT_EQ(view.common.back(), (std::pair<std::string, std::string>("origins", "2")));
}

TEST(View, TheLastOfTwoRunsOfOneCellCounts) {
  const std::vector<Record> records = {on_gpu("H200", "abc", 2), on_gpu("H200", "abc", 1)};
  const std::vector<Record> single = split_records(records).single;
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0].metrics.at("tflops"), 1);
}

TEST(View, ReasonsAreCountedOnce) {
  const std::vector<Record> records = sample_records();
  const std::vector<Reason> reasons = collect_reasons(make_view(records));
  int cells = 0;
  for (const Reason& reason : reasons) cells += reason.cells;
  const auto failed = std::count_if(records.begin(), records.end(),
                                    [](const Record& record) { return !record.status.ok(); });
  EXPECT_EQ(cells, failed);
  EXPECT_EQ(reasons[0].cells, 12);
}

TEST(View, KernelsWithOneReasonShareIt) {
  std::vector<Record> records(4, on_gpu("H200", "abc", 1));
  const auto refuse = [&](std::size_t i, const std::string& kernel, const std::string& reason) {
    records[i].c.kernel = kernel;
    records[i].status = {StatusCode::unsupported, reason};
  };
  refuse(0, "fa2", "fa2 runs on cuda, not on cpu");
  refuse(1, "fa3", "fa3 runs on cuda, not on cpu");
  refuse(2, "flex", "flex takes no lists of float32");
  refuse(3, "sdpa", "the length must be even");
  const std::vector<Reason> reasons = collect_reasons(make_view(records));
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_EQ(reasons[0].kernels, (std::vector<std::string>{"fa2", "fa3"}));
  EXPECT_EQ(reasons[0].sentence, "runs on cuda, not on cpu");
  EXPECT_EQ(reasons[0].cells, 2);
  EXPECT_EQ(reasons[1].sentence, "flex takes no lists of float32")
      << "one kernel keeps its sentence";
  EXPECT_EQ(join_kernels(reasons[0].kernels), "fa2, fa3");
  EXPECT_EQ(join_kernels(std::vector<std::string>{"magi, fa2", "usp, fa2"}), "magi, fa2; usp, fa2");
}

TEST(View, OfNothingIsEmpty) {
  const View view = make_view({});
  EXPECT_EQ(view.cells(), 0);
  EXPECT_TRUE(view.sections.empty());
  EXPECT_EQ(describe_counts(view), "0 cells");
}

TEST(View, EveryStatusButOkHasAMarkOfItsOwn) {
  std::string marks;
  for (const StatusCode code : marked_statuses()) {
    EXPECT_EQ(status_mark(code).size(), 1U);
    EXPECT_EQ(marks.find(status_mark(code)), std::string::npos);
    marks += status_mark(code);
  }
  EXPECT_EQ(marks.size(), 6U);
  EXPECT_EQ(status_mark(StatusCode::unsupported), "X");
  EXPECT_EQ(status_mark(StatusCode::oom), "E");
}

}  // namespace
}  // namespace longca::testing
