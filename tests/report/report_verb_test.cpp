// `longca report` from outside.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "bench/record/record_writer.h"
#include "report/sample_records.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReportVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordWriter writer(file_, RecordWriter::Mode::replace);
    for (const Record& record : sample_records()) writer.append(record);
  }

  ProcessResult report(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "report");
    return run_longca(arguments, {.directory = folder_.path().string()});
  }

  /// Exit 2 or another code, one sentence on stderr, nothing on stdout.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& part,
                      int exit_code = 2) const {
    const ProcessResult result = report(arguments);
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("longca: "));
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  const TempDirectory folder_;
  const std::string file_ = (folder_ / "sample.jsonl").string();
};

TEST_F(ReportVerb, ShowsATableWithoutOptions) {
  const ProcessResult result = report({file_});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, StartsWith("48 cells: 31 ok, "));
  EXPECT_EQ(result.err, "");
}

TEST_F(ReportVerb, WritesEveryView) {
  const ProcessResult result =
      report({file_, "--html", "a.html", "--csv", "a.csv", "--md", "a.md", "--plots", "plots"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_file(folder_ / "a.html"), StartsWith("<!doctype html>"));
  EXPECT_THAT(read_file(folder_ / "a.csv"), StartsWith("kernel,mask,tokens,"));
  EXPECT_THAT(read_file(folder_ / "a.md"), StartsWith("# longca-bench"));
  EXPECT_TRUE(fs::exists(folder_ / "plots/backward.pdf"));
  EXPECT_EQ(result.out, "13 files in plots: .html .pdf .png .svg\n");
}

TEST_F(ReportVerb, DashIsStandardOutput) {
  EXPECT_THAT(report({file_, "--csv", "-"}).out, StartsWith("kernel,mask,"));
  EXPECT_THAT(report({file_, "--md", "-"}).out, StartsWith("# longca-bench"));
  EXPECT_THAT(report({file_, "--html", "-"}).out, StartsWith("<!doctype html>"));
}

TEST_F(ReportVerb, MergesFilesAndTheLastRecordOfACellCounts) {
  Record again = sample_records()[0];
  again.status = {StatusCode::crash, "a later run"};
  again.metrics.clear();
  Record other = sample_records()[0];
  other.c.tokens = 512;
  {
    RecordWriter writer(folder_ / "later.jsonl", RecordWriter::Mode::replace);
    writer.append(again);
    writer.append(other);
  }
  const ProcessResult result = report({file_, "later.jsonl"});
  EXPECT_THAT(result.out, StartsWith("49 cells: 31 ok, "));
  EXPECT_THAT(result.out, HasSubstr("a later run"));
}

TEST_F(ReportVerb, ATornLastLineIsLeftOutAndSaid) {
  write_file(folder_ / "torn.jsonl", read_file(file_).substr(0, 3000));
  const ProcessResult result = report({"torn.jsonl"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("the last line of torn.jsonl is cut"));
}

TEST_F(ReportVerb, BadInputIsOneSentence) {
  expect_refused({}, "FILE is required");
  expect_refused({"none.jsonl"}, "none.jsonl: No such file or directory");
  expect_refused({"."}, "Is a directory");
  write_file(folder_ / "empty.jsonl", "");
  expect_refused({"empty.jsonl"}, "no records");
  write_file(folder_ / "text.jsonl", "my thesis\n");
  expect_refused({"text.jsonl"}, "text.jsonl:1: not a record of longca");
  write_file(folder_ / "new.jsonl", "{\"schema\":2}\n");
  expect_refused({file_, "new.jsonl"}, "new.jsonl:1: not a record of longca: 'schema' is 2");
  expect_refused({file_, "--csv", "no/a.csv"}, "cannot write no/a.csv: No such file");
  expect_refused({file_, "--md", "/dev/full"}, "/dev/full: No space left on device", 71);
  expect_refused({file_, "--plots", "sample.jsonl/plots"}, "sample.jsonl/plots");
}

TEST_F(ReportVerb, TwoViewsAreNotMixed) {
  expect_refused({file_, "--csv", "-", "--md", "-"},
                 "--csv and --md would both be written to standard output");
}

TEST_F(ReportVerb, FilesWithoutARecordAreNamed) {
  write_file(folder_ / "empty.jsonl", "");
  write_file(folder_ / "blank.jsonl", "\n");
  expect_refused({"empty.jsonl", "blank.jsonl"},
                 "there are no records in empty.jsonl, blank.jsonl");
}

TEST_F(ReportVerb, AViewDoesNotReplaceWhatItShows) {
  const std::string before = read_file(file_);
  fs::create_symlink(file_, folder_ / "link.html");
  fs::create_hard_link(file_, folder_ / "hard.csv");
  fs::create_hard_link(file_, folder_ / "forward.png");
  expect_refused({file_, "--html", file_}, "--html would overwrite " + file_);
  expect_refused({file_, "--html", "link.html"}, "--html would overwrite link.html");
  expect_refused({file_, "--csv", "hard.csv"}, "--csv would overwrite hard.csv");
  expect_refused({file_, "--md", "./sample.jsonl"}, "which the report reads");
  expect_refused({file_, "--md", "a", "--csv", "a"},
                 "--md would overwrite a, which --csv writes too");
  expect_refused({"forward.png", "--plots", "."}, "--plots might overwrite forward.png");
  expect_refused({file_, "--plots", ".", "--html", "index.html"},
                 "--plots would overwrite ./index.html, which --html writes too");
  EXPECT_EQ(read_file(file_), before);
}

TEST_F(ReportVerb, WhatTheSystemRefusesIsASentence) {
  fs::create_symlink("loop", folder_ / "loop");
  expect_refused({"loop"}, "loop: Too many levels of symbolic links", 71);
  expect_refused({file_, "--html", "loop"}, "loop: Too many levels of symbolic links", 71);
  expect_refused({file_, "--plots", "loop/plots"}, "loop", 71);
  expect_refused({"/proc/self/mem"}, "/proc/self/mem: Input/output error", 71);
  expect_refused({"/dev/zero"}, "/dev/zero:1: not a record of longca: the line is longer than");
}

TEST_F(ReportVerb, SeveralOriginsAreInEveryView) {
  std::vector<Record> records = sample_records();
  records.back().env.own()["commit"] = "fedcba9876543210";
  {
    RecordWriter writer(folder_ / "mixed.jsonl", RecordWriter::Mode::replace);
    for (const Record& record : records) writer.append(record);
  }
  const std::string part = "commit fedcba987654";
  EXPECT_THAT(report({"mixed.jsonl"}).out, HasSubstr("2 origins, all of "));
  for (const char* view : {"--html", "--csv", "--md"}) {
    EXPECT_THAT(report({"mixed.jsonl", view, "-"}).out, HasSubstr(part)) << view;
  }
  EXPECT_EQ(report({"mixed.jsonl", "--plots", "plots"}).exit_code, 0);
  EXPECT_THAT(read_file(folder_ / "plots/forward.svg"), HasSubstr("origins 2"));
}

/// The same cells of two builds, drivers, cards and hosts, in one file.
TEST_F(ReportVerb, EqualCellsOfTwoOriginsAreApartInEveryView) {
  // Another build has tried a cell again that was a timeout.
  for (const auto& [pointer, value, part, cells] :
       {std::tuple{"/commit", "fedcba9876543210", "commit fedcba987654", 95},
        {"/gpu_driver", "999.1", "driver 999.1", 96},
        {"/gpus/0/model", "Another GPU", "Another GPU", 96},
        {"/cpu/model", "Another CPU", "Another CPU", 96}}) {
    SCOPED_TRACE(pointer);
    std::string joined;
    for (Record record : sample_records()) {
      auto& env = record.env.own();
      env["gpus"] = nlohmann::json::array({{{"model", "A GPU"}}});
      env["gpu_driver"] = "570.1";
      joined += to_line(record) + '\n';
      env[nlohmann::json::json_pointer(pointer)] = value;
      joined += to_line(record) + '\n';
    }
    write_file(folder_ / "joined.jsonl", joined);
    const ProcessResult table = report({"joined.jsonl"});
    EXPECT_THAT(table.out, StartsWith(fmt::format("{} cells: 62 ok, ", cells)));
    EXPECT_THAT(table.out, HasSubstr(part));
    const std::string csv = report({"joined.jsonl", "--csv", "-"}).out;
    EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + cells);
    EXPECT_THAT(csv, HasSubstr(part));
    EXPECT_THAT(report({"joined.jsonl", "--html", "-"}).out,
                HasSubstr(fmt::format("\"count\":{},", cells)));
  }
}

TEST_F(ReportVerb, AxesNarrowEveryView) {
  const std::vector<std::string> only{file_, "-a", "mask=full", "-a", "tokens=4K"};
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), only.begin(), only.end());
    return report(options);
  };
  for (const auto& options :
       std::vector<std::vector<std::string>>{{}, {"--csv", "-"}, {"--md", "-"}, {"--html", "-"}}) {
    const auto result = with(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("full"));
    EXPECT_THAT(result.out, ::testing::Not(HasSubstr("causal_document")));
  }
  expect_refused({file_, "-a", "mask=fulll"}, "no record has mask 'fulll' (did you mean 'full'?)");
}

TEST_F(ReportVerb, WidthIsThatOfColumns) {
  const auto at = [&](const char* columns) {
    return run_longca({"report", file_}, {.environment = {{"COLUMNS", columns}}}).out;
  };
  EXPECT_THAT(at("120"), HasSubstr("\nmemory  backward peak\n"));
  EXPECT_THAT(at("60"), ::testing::Not(HasSubstr("\nmemory  ")));
  EXPECT_EQ(at("no number"), at("100"));
}

TEST_F(ReportVerb, NothingIsWrittenWhereAFileIsRefused) {
  write_file(folder_ / "a.csv", "before");
  write_file(folder_ / "bad.jsonl", "nonsense\n");
  EXPECT_EQ(report({"bad.jsonl", "--csv", "a.csv"}).exit_code, 2);
  EXPECT_EQ(read_file(folder_ / "a.csv"), "before");
}

}  // namespace
}  // namespace longca::testing
