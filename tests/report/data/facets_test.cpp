#include "report/data/facets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/data/summary.h"
#include "report/html_data.h"
#include "report/sample_records.h"

namespace longca::testing {
namespace {

using ::testing::ElementsAre;

/// A cell of `full` that a kernel took so long for, of a build and a host with the same card.
Record cell(const char* kernel, double time_ms, const char* commit, const char* cpu = "A") {
  Record record = sample_records()[0];
  record.c.kernel = kernel;
  record.c.device = "cuda";
  record.metrics = {{"time_ms", time_ms}, {"tflops", 1 / time_ms}};
  record.env = {{"gpus", nlohmann::json::array({{{"model", "H200"}}})},
                {"gpu_driver", "570.1"},
                {"cpu", {{"model", cpu}, {"cores_usable", 8}}},
                {"version", "1.0"},
                {"commit", commit}};
  return record;
}

/// "build latest of each cell: slow* fast", marked as ranked, by section.
std::vector<std::string> sections(const std::vector<Record>& records) {
  const SplitRecords split = split_records(records);
  const View view = make_view(split.single);
  std::vector<std::string> texts;
  for (const ViewSection& section : view.sections) {
    const ViewGroup& group = section.groups.at(0);
    const PassRankings rankings(group);
    std::string text = join_axes(section.setting, ", ") + ":";
    for (const ViewRow& row : group.rows) {
      text += " " + row.kernel + (rankings.is_marked(row, Pass::forward) ? "*" : "");
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(Facets, OneCellMeasuredAgainLeavesTheOthersInOneTable) {
  const std::vector<Record> records = {cell("flex", 4, "abc"), cell("slice", 1, "def"),
                                       cell("fa2", 6, "abc"), cell("fa2", 5, "123"),
                                       cell("naive", 9, "def")};
  EXPECT_THAT(sections(records), ElementsAre("build latest of each cell: flex slice* fa2 naive",
                                             "build 1.0, commit abc: fa2"));
  const SplitRecords split = split_records(records);
  const Summary summary = summarize(make_view(split.single));
  EXPECT_EQ(summary.problems[0], 1);
  for (const SummaryRow& row : summary.rows) {
    EXPECT_EQ(row.at(RankedWork::forward).first, row.name == "slice" ? 1 : 0) << row.name;
  }
}

/// A page never shows both at once, and the latest at first.
TEST(Facets, APageHasOlderCellsAsAChoice) {
  const std::vector<Record> records = {cell("fa2", 6, "abc"), cell("flex", 4, "abc"),
                                       cell("slice", 1, "def"), cell("fa2", 5, "def")};
  const nlohmann::json axes = html_data(split_records(records)).at("kinds").at(0).at("axes");
  ASSERT_EQ(axes.size(), 1U);
  EXPECT_EQ(axes[0].at("chosen"), kLatest);
  EXPECT_EQ(axes[0].at("values"), (nlohmann::json{kLatest, "1.0, commit abc"}));
}

TEST(Facets, TheLatestIsByItsTimeNotByTheOrderOfFiles) {
  std::vector<Record> records = {cell("fa2", 5, "def"), cell("fa2", 6, "abc"),
                                 cell("slice", 1, "abc")};
  records[0].at = "2026-06-01T10:00:00Z";
  records[1].at = "2026-05-01T10:00:00Z";
  EXPECT_THAT(sections(records),
              ElementsAre("build latest of each cell: fa2 slice*", "build 1.0, commit abc: fa2"));
}

TEST(Facets, WholeRunsOfTwoBuildsKeepTheirTitles) {
  std::vector<Record> records = {cell("fa2", 6, "abc"), cell("slice", 2, "abc"),
                                 cell("fa2", 5, "def"), cell("slice", 1, "def")};
  EXPECT_THAT(sections(records), ElementsAre("build 1.0, commit abc: fa2 slice*",
                                             "build 1.0, commit def: fa2 slice*"));
  records.push_back(cell("flex", 4, "def"));  // the other one lacks
  EXPECT_THAT(sections(records), ElementsAre("build 1.0, commit abc: fa2 slice*",
                                             "build 1.0, commit def: fa2 slice* flex"));
  records.pop_back();
  records[0].at = "2026-06-01T10:00:00Z";  // neither has the latest of both
  EXPECT_THAT(sections(records), ElementsAre("build 1.0, commit abc: fa2 slice*",
                                             "build 1.0, commit def: fa2 slice*"));
}

TEST(Facets, HostsAreAsBuilds) {
  std::vector<Record> records = {cell("flex", 4, "abc", "A"), cell("fa2", 6, "abc", "A"),
                                 cell("slice", 1, "abc", "B"), cell("fa2", 5, "abc", "C")};
  EXPECT_THAT(sections(records), ElementsAre("host latest of each cell: flex fa2 slice*",
                                             "host A, 8 cores, H200 (driver 570.1): fa2"));
  records = {cell("fa2", 6, "abc", "A"), cell("slice", 1, "abc", "A"), cell("fa2", 5, "abc", "B"),
             cell("slice", 2, "abc", "B")};
  EXPECT_THAT(sections(records), ElementsAre("host A, 8 cores, H200 (driver 570.1): fa2 slice*",
                                             "host B, 8 cores, H200 (driver 570.1): fa2 slice*"));
}

/// Of a case that two builds and two hosts measured no cell replaces another.
TEST(Facets, OlderCellsOfBuildsAndHostsAreAllShown) {
  const std::vector<Record> records = {cell("fa2", 6, "abc", "A"), cell("fa2", 7, "abc", "B"),
                                       cell("fa2", 5, "def", "A"), cell("slice", 1, "abc", "A"),
                                       cell("flex", 4, "123", "A")};
  std::size_t cells = 0;
  const SplitRecords split = split_records(records);
  const View view = make_view(split.single);
  for (const ViewSection& section : view.sections) {
    for (const ViewRow& row : section.groups.at(0).rows) {
      cells += row.pass(Pass::forward) != nullptr ? 1 : 0;
    }
  }
  EXPECT_EQ(cells, records.size());
}

}  // namespace
}  // namespace longca::testing
