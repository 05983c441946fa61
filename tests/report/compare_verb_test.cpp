// `longca compare` from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/record/record_writer.h"
#include "report/sample_records.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompareVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Record> records = sample_records();
    for (Record& record : records) {
      if (!record.status.ok()) continue;
      const double time = record.metrics.at("time_ms");
      record.rounds_ms = {{time}, {time * 1.001}, {time * 0.999}, {time}};
      record.samples_ms = {time, time * 1.001, time * 0.999, time};
    }
    write(base_, records);
    for (Record& record : records) {
      for (auto& round : record.rounds_ms) round[0] *= 1.2;
    }
    write(slower_, records);
  }

  static void write(const std::string& file, std::span<const Record> records) {
    RecordWriter writer(file, RecordWriter::Mode::replace);
    for (const Record& record : records) writer.append(record);
  }

  ProcessResult compare(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "compare");
    return run_longca(arguments, {.directory = folder_.path().string()});
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& part) const {
    const ProcessResult result = compare(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("longca: "));
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  const TempDirectory folder_;
  const std::string base_ = (folder_ / "base.jsonl").string();
  const std::string slower_ = (folder_ / "slower.jsonl").string();
};

TEST_F(CompareVerb, ExitsWith1WhereSomethingIsSlower) {
  const ProcessResult result = compare({base_, slower_});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("31 slower, 17 same"));
  const ProcessResult faster = compare({slower_, base_});
  EXPECT_EQ(faster.exit_code, 0);
  EXPECT_THAT(faster.out, HasSubstr("31 faster, 17 same"));
}

TEST_F(CompareVerb, JsonIsTheContract) {
  const auto json = nlohmann::json::parse(compare({base_, slower_, "--json"}).out);
  EXPECT_EQ(json["counts"]["slower"], 31);
  EXPECT_EQ(json["counts"]["broken"], 0);
  EXPECT_EQ(json["cells"].size(), 48U);
  for (const auto& cell : json["cells"]) {
    ASSERT_TRUE(cell.contains("key"));
    if (cell["verdict"] == "slower") {
      EXPECT_NEAR(cell["ratio"].get<double>(), 1.2, 1e-9);
      EXPECT_LE(cell["low"], cell["ratio"]);
      EXPECT_GE(cell["high"], cell["ratio"]);
    }
  }
}

TEST_F(CompareVerb, ALargerLeastEffectLetsItPass) {
  EXPECT_EQ(compare({base_, slower_, "--min-effect", "25"}).exit_code, 0);
}

TEST_F(CompareVerb, TheSameFileTwiceIsSaidAndCompared) {
  const ProcessResult result = compare({base_, base_});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("BASE and NEW are the same file"));
  EXPECT_THAT(result.out, HasSubstr("48 same"));
}

TEST_F(CompareVerb, WritesAPage) {
  EXPECT_EQ(compare({base_, slower_, "--html", "page.html"}).exit_code, 1);
  EXPECT_THAT(read_file(folder_ / "page.html"), StartsWith("<!doctype html>"));
}

TEST_F(CompareVerb, BadInputIsOneSentence) {
  write_file(folder_ / "schema.jsonl", "{\"schema\":7,\"key\":\"a\"}\n");
  write_file(folder_ / "text.jsonl", "not records\n");
  write_file(folder_ / "nan.jsonl", "{\"schema\":1,\"key\":\"a\",\"samples_ms\":[NaN]}\n");
  write_file(folder_ / "empty.jsonl", "");
  expect_refused({base_, "schema.jsonl"}, "'schema' is 7");
  expect_refused({base_, "text.jsonl"}, "text.jsonl:1: not a record");
  expect_refused({base_, "nan.jsonl"}, "no valid JSON");
  expect_refused({base_, "empty.jsonl"}, "empty.jsonl has no records");
  expect_refused({base_, "missing.jsonl"}, "missing.jsonl");
  expect_refused({base_}, "NEW");
  expect_refused({base_, slower_, "--min-effect", "-1"}, "--min-effect -1");
  expect_refused({base_, slower_, "--min-effect", "nan"}, "--min-effect nan");
  expect_refused({base_, slower_, "--html", base_}, "--html");
  expect_refused({base_, slower_, "--json", "--html", "-"}, "standard output");
}

TEST_F(CompareVerb, FilesWithoutACommonCellAreComparedAndNoted) {
  const std::vector<Record> records = sample_records();
  write((folder_ / "one.jsonl").string(), std::span(records).first(1));
  write((folder_ / "two.jsonl").string(), std::span(records).subspan(1, 1));
  const ProcessResult text = compare({"one.jsonl", "two.jsonl"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err, "longca: BASE has 1 cell and NEW has 1, and none is in both\n");
  EXPECT_THAT(text.out, HasSubstr("2 cells: 1 only_base, 1 only_new"));
  const ProcessResult json = compare({"one.jsonl", "two.jsonl", "--json", "--html", "page.html"});
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(nlohmann::json::parse(json.out)["counts"]["only_new"], 1);
  EXPECT_THAT(read_file(folder_ / "page.html"), HasSubstr("No cell has times in both."));
}

TEST_F(CompareVerb, FilesWithoutSamplesAreComparedAndNoted) {
  std::vector<Record> records = sample_records();
  for (Record& record : records) record.samples_ms.clear();
  write((folder_ / "bare.jsonl").string(), records);
  const ProcessResult result = compare({"bare.jsonl", "bare.jsonl", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("has samples in both"));
  EXPECT_EQ(nlohmann::json::parse(result.out)["counts"]["unclear"], 31);
}

}  // namespace
}  // namespace longca::testing
