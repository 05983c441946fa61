// `longca advise` from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/record/record_writer.h"
#include "planted.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AdviseVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    RecordWriter writer(file_, RecordWriter::Mode::replace);
    for (const Record& record : advise::testing::planted_records()) writer.append(record);
  }

  ProcessResult advise_from(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"advise", "--records", file_, "--platform", "h200"});
    return run_longca(arguments, {.directory = folder_.path().string()});
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& part) const {
    const ProcessResult result = advise_from(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("longca: "));
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  const TempDirectory folder_;
  const std::string file_ = (folder_ / "planted.jsonl").string();
};

TEST_F(AdviseVerb, JsonIsTheContract) {
  const auto result = advise_from({"-a", "mask=causal", "-a", "tokens=4K,6K", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["choices"].size(), 4U) << "two kernels at two lengths";
  for (const auto& choice : json["choices"]) {
    for (const char* key : {"rank", "kernel", "scheme", "shard", "time_ms", "low_ms", "high_ms",
                            "peak_bytes", "basis", "tied", "records", "problem", "pass"}) {
      EXPECT_TRUE(choice.contains(key)) << key;
    }
    EXPECT_LE(choice["low_ms"], choice["time_ms"]);
    EXPECT_TRUE(choice["scheme"].is_null());
    EXPECT_EQ(choice["pass"], "step");
  }
  EXPECT_EQ(json["choices"][0]["kernel"], "slice");
  EXPECT_EQ(json["choices"][0]["basis"], "measured");
  EXPECT_EQ(json["choices"][2]["basis"], "interpolated");
  EXPECT_EQ(json["find_out"].size(), 2U);
}

TEST_F(AdviseVerb, TheTableNamesCardBasisAndRecords) {
  const auto result = advise_from({"-a", "mask=causal", "-a", "tokens=6K"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"NVIDIA H200: 100 cells", "1  slice", "interpolated between",
                           "cannot:", "not known:", "to find out: longca bench", "planted.jsonl"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(AdviseVerb, OfKernelsThatWereNotAskedForTheTableSaysNothing) {
  const std::vector<std::string> one{"-a", "mask=causal", "-a", "tokens=6K", "-a", "kernel=slice"};
  const auto table = advise_from(one);
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, Not(HasSubstr("cannot:")));
  std::vector<std::string> as_json = one;
  as_json.emplace_back("--json");
  EXPECT_THAT(advise_from(as_json).out, HasSubstr("not asked for"));
}

TEST_F(AdviseVerb, EvaluatesItself) {
  const auto result = advise_from({"--evaluate", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["left_out"].size(), 3U);
  EXPECT_EQ(json["left_out"][1]["by"], "length");
  EXPECT_EQ(json["left_out"][1]["all"]["right_pct"], 100.0);
  EXPECT_TRUE(json["left_out"][2]["all"]["median_error_pct"].is_null()) << "one pair of heads";
  EXPECT_THAT(advise_from({"--evaluate"}).out, HasSubstr("length left out"));
}

TEST_F(AdviseVerb, RefusesInOneSentence) {
  expect_refused({"-a", "mask=cuasal"}, "did you mean 'causal'");
  expect_refused({"--objective", "tiem"}, "did you mean 'time'");
  expect_refused({"--needs", "lsee"}, "did you mean 'lse'");
  expect_refused({"--pass", "step", "-a", "pass=forward"}, "give one of them");
  expect_refused({"-a", "scheme=magi"}, "over how many ranks");
  expect_refused({"-a", "kernel=sdpa", "-a", "mask=document"}, "sdpa: its arguments are");
  expect_refused({"-a", "device=cpu"}, "no record is of a card 'h200'");
}

TEST_F(AdviseVerb, OwnDocumentsAreSampledAndTheirTimesAveraged) {
  write_file(folder_ / "docs.txt", "1000 2000 3000\n0 500 4000\n2048 2048\n");
  const auto result = advise_from({"--documents", "docs.txt", "--samples", "2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["choices"].size(), 2U);
  EXPECT_EQ(json["choices"][0]["kernel"], "slice");
  EXPECT_EQ(json["choices"][0]["basis"], "interpolated");
  write_file(folder_ / "broken.txt", "512\n12 x\n");
  expect_refused({"--documents", "broken.txt"}, "broken.txt:2");
  expect_refused({"--documents", "docs.txt", "-a", "tokens=4K"}, "leave -a tokens= out");
  expect_refused({"--documents", "docs.txt", "--samples", "0"}, "--samples 0");
}

TEST_F(AdviseVerb, OverRanksThatNobodyMeasuredItSimulates) {
  const std::vector<std::string> sixteen{"-a", "mask=causal", "-a", "tokens_per_rank=1K",
                                         "-a", "ranks=16",    "-a", "scheme=usp,ring_p2p"};
  auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = sixteen;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto result = advise_from(with({"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_GE(json["choices"].size(), 2U);
  double before = 0;
  for (const auto& choice : json["choices"]) {
    EXPECT_EQ(choice["basis"], "simulated");
    EXPECT_EQ(choice["platform"], "h200x8_ib400") << "the smallest of H200s that has 16";
    EXPECT_EQ(choice["kernel"], "slice");
    EXPECT_THAT((std::vector<std::string>{"usp", "ring_p2p"}), Contains(choice["scheme"]));
    const double time = choice["time_ms"];
    EXPECT_GE(time, before) << "best first";
    EXPECT_NEAR(choice["low_ms"].get<double>(), 0.75 * time, 1e-9) << "the page's error";
    EXPECT_NEAR(choice["high_ms"].get<double>(), 1.25 * time, 1e-9);
    before = time;
  }
  EXPECT_THAT(json["find_out"][0]["command"], HasSubstr("longca cp"));
  EXPECT_THAT(advise_from(sixteen).out, HasSubstr("simulated on h200x8_ib400"));
  EXPECT_THAT(advise_from(with({"--objective", "memory"})).out, HasSubstr("not simulated"));
  EXPECT_THAT(advise_from(with({"-a", "kernel=cudnn"})).out, HasSubstr("--rates FILE"));
}

TEST_F(AdviseVerb, AClusterMayBeNamedWhoseCardHasNoRecords) {
  std::vector<std::string> arguments{
      "advise", "--records", file_, "--platform",  "h800x8_ib200", "-a",     "mask=full",
      "-a",     "tokens=8K", "-a",  "scheme=magi", "-a",           "ranks=8"};
  const auto result = run_longca(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("H800: 0 cells"));
  EXPECT_THAT(result.out, HasSubstr("simulated on h800x8_ib200"));
  arguments.back() = "ranks=2048";
  const auto refused = run_longca(arguments);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("h800x8_ib200 has 1024 GPUs, and 2048 ranks are asked for"));
}

TEST_F(AdviseVerb, ACardWithoutRecordsIsOfferedARun) {
  const auto result = run_longca({"advise", "--records", file_, "--platform", "b300"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("they are of NVIDIA H200: run 'longca bench dense"));
}

}  // namespace
}  // namespace longca::testing
