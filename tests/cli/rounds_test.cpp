// `longca bench --rounds` from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/record/record.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class RoundsOfBench : public ::testing::Test {
 protected:
  ProcessResult bench(std::vector<std::string> more) const {
    std::vector<std::string> arguments{
        "bench", "-a",           "kernel=naive,flash", "-a",   "mask=full", "-a", "tokens=64",
        "-a",    "pass=forward", "--time-limit",       "0.01", "--out",     out_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_longca(arguments, {.directory = folder_.path().string()});
  }

  const TempDirectory folder_;
  const std::string out_ = (folder_ / "out.jsonl").string();
};

TEST_F(RoundsOfBench, RecordsTheSamplesOfEachRound) {
  const ProcessResult result = bench({"--rounds", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("[6/6] round 3 of 3, "));
  EXPECT_THAT(result.out, HasSubstr("±"));
  const std::vector<Record> records = read_records(out_).records;
  ASSERT_THAT(records, SizeIs(2)) << "one line a cell";
  for (const Record& record : records) {
    EXPECT_THAT(record.rounds_ms, SizeIs(3));
    std::vector<double> all;
    for (const auto& round : record.rounds_ms) all.insert(all.end(), round.begin(), round.end());
    EXPECT_EQ(record.samples_ms, all);
    EXPECT_TRUE(record.metrics.contains("time_ci_pct"));
    EXPECT_EQ(record.env->at("rounds")["count"], 3);
    EXPECT_TRUE(record.env->at("rounds")["seed"].is_number());
  }
}

TEST_F(RoundsOfBench, ResumeRunsTheRoundsThatAreMissing) {
  ASSERT_EQ(bench({}).exit_code, 0);
  EXPECT_THAT(read_records(out_).records.at(0).rounds_ms, SizeIs(0));
  const ProcessResult result = bench({"--rounds", "3", "--resume"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("[4/4] round 3 of 3, "));
  for (const Record& record : read_records(out_).records) EXPECT_THAT(record.rounds_ms, SizeIs(3));
  EXPECT_THAT(bench({"--rounds", "2", "--resume"}).err, ::testing::Not(HasSubstr("round")));
}

TEST_F(RoundsOfBench, ResumeJoinsNoRoundsOfTwoBuilds) {
  ASSERT_EQ(bench({"--rounds", "2"}).exit_code, 0);
  std::string text = read_file(out_);
  const std::size_t place = text.find("\"commit\":\"") + 10;
  const std::string was = text.substr(place, text.find('"', place) - place);
  for (auto at = text.find(was); at != std::string::npos; at = text.find(was, at + 7)) {
    text.replace(at, was.size(), "another");
  }
  write_file(out_, text);
  EXPECT_EQ(bench({"--rounds", "3", "--resume"}).exit_code, 2) << "asks for --across";
  const ProcessResult result = bench({"--rounds", "3", "--resume", "--across"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("2 cells of " + out_ +
                                    " lack rounds and were begun elsewhere: "
                                    "all 3 rounds are measured here"));
  for (const Record& record : read_records(out_).records) {
    EXPECT_THAT(record.rounds_ms, SizeIs(3));
    EXPECT_EQ(record.env->at("commit"), was);
  }
}

TEST_F(RoundsOfBench, CompareRunsTwoProgramsInTurns) {
  const std::string program = program_of_tests();
  const ProcessResult result =
      run_longca({"compare", "--build", program, "-a", "kernel=flash", "-a", "mask=full", "-a",
                  "tokens=64", "-a", "pass=forward", "--rounds", "2", "--min-effect", "1000"},
                 {.directory = folder_.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, ::testing::ContainsRegex("1 of 2: base(.*\n)*.*1 of 2: new(.*\n)*.*"
                                                   "2 of 2: new(.*\n)*.*2 of 2: base"));
  for (const char* side : {"base", "new"}) {
    const auto file = folder_ / "results" / "compare" / (std::string(side) + ".jsonl");
    const std::vector<Record> records = read_records(file).records;
    ASSERT_THAT(records, SizeIs(1));
    EXPECT_THAT(records[0].rounds_ms, SizeIs(2));
  }
}

TEST_F(RoundsOfBench, CompareKeepsWhatWasInThePlaceOfItsRecords) {
  const std::string program = program_of_tests();
  const auto compare = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"compare", "--build", program, "-a", "mask=full", "-a", "tokens=64", "-a",
                 "pass=forward", "--rounds", "1", "--min-effect", "1000", "--out", folder_ / "c"});
    return run_longca(more, {.directory = folder_.path().string()});
  };
  const std::vector<std::string> one{"-a", "kernel=flash"}, two{"-a", "kernel=naive,flash"};
  std::filesystem::create_directory(folder_ / "c");
  write_file(folder_ / "c" / "base.jsonl", "notes\n");
  const ProcessResult refused = compare(one);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("base.jsonl holds other things than records"));
  EXPECT_EQ(read_file(folder_ / "c" / "base.jsonl"), "notes\n");
  std::filesystem::remove(folder_ / "c" / "base.jsonl");
  ASSERT_EQ(compare(two).exit_code, 0);
  const std::string before = read_file(folder_ / "c" / "new.jsonl");
  ASSERT_EQ(compare(one).exit_code, 0);
  EXPECT_EQ(read_file(folder_ / "c" / "new.jsonl.bak"), before) << "two cells, replaced by one";
  EXPECT_THAT(read_records(folder_ / "c" / "new.jsonl").records, SizeIs(1));
  EXPECT_THAT(compare({"--html", folder_ / "c" / "new.jsonl"}).err, HasSubstr("would overwrite"));
}

TEST_F(RoundsOfBench, CompareRefusesWhatItCannotRun) {
  const auto refused = [&](std::vector<std::string> arguments, const std::string& part) {
    arguments.insert(arguments.begin(), "compare");
    const ProcessResult result = run_longca(arguments, {.directory = folder_.path().string()});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({"a.jsonl", "b.jsonl", "--build", "x"}, "not the files BASE and NEW");
  refused({"--build", "/no/such"}, "/no/such");
  refused({"--build", "/bin/ls"}, "/bin/ls is no longca: --version answers 'ls");
  refused({"--build", "x", "--commits", "a", "b"}, "give one of them");
  refused({"--commits", "no-such-commit", "HEAD"}, "no commit 'no-such-commit'");
  refused({"--commits", "no-such-commit", "HEAD", "quick"}, "no commit 'no-such-commit'");
  refused({"a.jsonl"}, "BASE and NEW are missing");
}

TEST_F(RoundsOfBench, DryRunCountsThem) {
  const ProcessResult result = bench({"--rounds", "3", "--dry-run"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("3 rounds: 6 cells to run\n"));
}

TEST_F(RoundsOfBench, RefusesNumbersThatNoRunCanHave) {
  for (const char* rounds : {"0", "-3", "100000", "99999999999999999999", "two"}) {
    const ProcessResult result = bench({"--rounds", rounds});
    EXPECT_EQ(result.exit_code, 2) << rounds;
    EXPECT_THAT(result.err, HasSubstr("--rounds")) << rounds;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

}  // namespace
}  // namespace longca::testing
