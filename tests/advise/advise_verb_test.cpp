// `longca advise` from outside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "bench/record/record.h"
#include "bench/record/record_writer.h"
#include "bench/suite/axes.h"
#include "planted.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
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
    return run_longca(arguments, wide_);
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
  /// No sentence is broken.
  const ProcessOptions wide_{.directory = folder_.path().string(),
                             .environment = {{"COLUMNS", "1000"}}};
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

TEST_F(AdviseVerb, AKernelOfAnotherDeviceIsNamed) {
  const auto result = advise_from({"-a", "mask=causal", "-a", "kernel=slice,flash"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("cannot:\n      flash: flash runs on cpu, not on cuda"));
}

/// Without counting the tiles of a mask of a billion tokens.
TEST_F(AdviseVerb, WhatNoMemoryHoldsIsRefusedAtOnce) {
  const auto result = advise_from({"-a", "mask=causal", "-a", "tokens=1024M"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("slice: one layer's q, k, v, o and their gradients take "));
  const auto first = result.err.find("of a GPU, which has");
  EXPECT_EQ(result.err.find("of a GPU, which has", first + 1), std::string::npos) << result.err;
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
  for (const std::vector<std::string>& problem :
       {std::vector<std::string>{"-a", "mask=full"}, {"--pass", "forward"}, {"--gpus", "8"}}) {
    std::vector<std::string> both = problem;
    both.insert(both.begin(), "--evaluate");
    const auto refused = advise_from(both);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--evaluate is of all records: leave "));
  }
}

/// Of a mask that draws nothing the seed is none of the problem's.
TEST_F(AdviseVerb, AnotherSeedOfACausalMaskIsTheSameProblem) {
  const auto basis = [&](const std::string& seed) {
    const auto answer = advise_from({"-a", "mask=causal", "-a", "tokens=8K", "-a", "seed=" + seed,
                                     "--pass", "forward", "--json"});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    const auto choices = nlohmann::json::parse(answer.out).at("choices");
    return choices.at(0).at("basis").get<std::string>() + " " + choices.at(0).at("time_ms").dump();
  };
  EXPECT_EQ(basis("7"), basis("42"));
  EXPECT_THAT(basis("7"), HasSubstr("measured"));
}

TEST_F(AdviseVerb, RefusesInOneSentence) {
  expect_refused({"-a", "mask=cuasal"}, "did you mean 'causal'");
  expect_refused({"--objective", "tiem"}, "did you mean 'time'");
  expect_refused({"--needs", "lsee"}, "did you mean 'lse'");
  expect_refused({"--pass", "step", "-a", "pass=forward"}, "give one of them");
  expect_refused({"-a", "scheme=magi"}, "over how many ranks");
  expect_refused({"-a", "kernel=sdpa", "-a", "mask=document"}, "sdpa: its arguments are");
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{}, {"-a", "ranks=8"}, {"--gpus", "8"}}) {
    std::vector<std::string> arguments{"-a", "kernel=flash"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    expect_refused(arguments, "flash runs on cpu, and the records are of cuda");
  }
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
  EXPECT_EQ(json["choices"][0]["sequences_sampled"], 2);
  expect_refused({"--samples", "2"}, "--samples 2: of which sequences?");
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
    EXPECT_NEAR(choice["low_ms"].get<double>(), time / 1.25, 1e-9)
        << "the page's error: simulated over measured, less 1";
    EXPECT_NEAR(choice["high_ms"].get<double>(), time / 0.75, 1e-9);
    before = time;
  }
  EXPECT_THAT(json["find_out"][0]["command"], HasSubstr("longca cp"));
  EXPECT_THAT(advise_from(sixteen).out, HasSubstr("simulated on h200x8_ib400"));
  for (const char* ranks : {"ranks=2", "ranks=4", "ranks=8"}) {
    const std::string out = advise_from(with({"-a", ranks})).out;
    EXPECT_THAT(out, AllOf(HasSubstr("simulated on h200x8"), Not(HasSubstr("h200x8_")),
                           Not(HasSubstr("h200x2"))))
        << "the page whose error has been measured, not a smaller one";
  }
  EXPECT_THAT(advise_from(with({"--objective", "memory"})).out, HasSubstr("not simulated"));
  EXPECT_THAT(advise_from(with({"-a", "kernel=cudnn"})).out, HasSubstr("--rates FILE"));
}

/// The one measured kernel must not hide others, nor a measured scheme be simulated as well.
TEST_F(AdviseVerb, BesideWhatIsMeasuredOverRanksItSimulatesTheRest) {
  const std::string ranks = (folder_ / "ranks.jsonl").string();
  RecordWriter writer(ranks, RecordWriter::Mode::replace);
  for (const auto& [kernel, mask] : {std::pair{"cudnn", "causal"}, std::pair{"slice", "full"}}) {
    Case c = advise::testing::case_of(kernel, mask, 8192);
    c.scheme = "ring_p2p";
    c.ranks = 2;
    writer.append(advise::testing::record_of(canonical(c), 50));
  }
  const auto answer = [&](const std::string& mask, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"advise",    "--records", ranks,     "--platform",   "h200",
                                       "--pass",    "forward",   "-a",      "mask=" + mask, "-a",
                                       "tokens=8K", "-a",        "ranks=2", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_longca(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::map<std::string, std::set<std::string>> bases;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& choice : json.at("choices")) {
      bases[choice.at("kernel").get<std::string>() + " " + choice.at("scheme").get<std::string>()]
          .insert(choice.at("basis").get<std::string>());
    }
    EXPECT_FALSE(json.at("find_out").empty()) << mask;
    return bases;
  };
  const std::set<std::string> measured{"measured"};
  const std::set<std::string> simulated{"simulated"};
  for (const auto& more : {std::vector<std::string>{}, {"-a", "kernel=cudnn,slice"}}) {
    auto bases = answer("causal", more);
    EXPECT_EQ(bases["cudnn ring_p2p"], measured);
    EXPECT_EQ(bases["slice ring_p2p"], simulated);
    EXPECT_EQ(bases["slice magi"], simulated);
  }
  auto of_slice = answer("causal", {"-a", "kernel=slice"});
  EXPECT_EQ(of_slice["slice magi"], simulated) << "though records of cudnn are there";
  EXPECT_FALSE(of_slice.contains("cudnn ring_p2p"));
  auto full = answer("full", {});
  EXPECT_EQ(full["slice ring_p2p"], measured) << "not simulated as well";
  EXPECT_EQ(full["slice magi"], simulated);
}

TEST_F(AdviseVerb, APageOfOneNodeMayBeNamed) {
  const std::vector<std::string> arguments{
      "advise", "--records", file_, "--platform",  "h200x2", "-a",     "mask=full",
      "-a",     "tokens=8K", "-a",  "scheme=magi", "-a",     "ranks=2"};
  const auto result = run_longca(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("simulated on h200x2"));
}

TEST_F(AdviseVerb, WhatTheKernelCannotIsNotSimulated) {
  const auto result =
      run_longca({"advise", "--records", file_, "--platform", "h200x8", "-a", "mask=full", "-a",
                  "tokens=8K", "-a", "scheme=magi", "-a", "ranks=2", "-a", "dtype=float32"});
  EXPECT_THAT(result.out + result.err, HasSubstr("slice has no float32, only bfloat16"));
  EXPECT_THAT(result.out, Not(HasSubstr("simulated on")));
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

TEST_F(AdviseVerb, WeighsContextParallelDegreesAgainstReplicas) {
  const std::vector<std::string> job{
      "-a",         "mask=causal", "-a", "tokens=8K", "-a", "scheme=usp,magi",   "-a",
      "mode=burst", "--gpus",      "4",  "--layers",  "3",  "--tokens-per-step", "16K"};
  std::vector<std::string> as_json = job;
  as_json.emplace_back("--json");
  const auto result = advise_from(as_json);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["sequences"], 2);
  std::map<int, nlohmann::json> best;
  for (const auto& choice : json["choices"]) best.try_emplace(choice["degree"], choice);
  ASSERT_EQ(best.size(), 3U) << "degrees 1, 2 and 4";
  EXPECT_EQ(best[1]["basis"], "measured");
  EXPECT_EQ(best[1]["kernel"], "slice");
  EXPECT_TRUE(best[1]["scheme"].is_null());
  const auto one = nlohmann::json::parse(
      advise_from({"-a", "mask=causal", "-a", "tokens=8K", "--json"}).out)["choices"][0];
  EXPECT_NEAR(best[1]["time_ms"].get<double>(), 3 * one["time_ms"].get<double>(), 1e-9)
      << "a sequence on two of four replicas, three layers";
  for (const int degree : {2, 4}) {
    EXPECT_EQ(best[degree]["basis"], "simulated");
    EXPECT_EQ(best[degree]["replicas"], 4 / degree);
    EXPECT_EQ(best[degree]["kept_bytes"], best[1]["kept_bytes"].get<double>() / degree);
  }
  const auto table = advise_from(job);
  EXPECT_THAT(table.out, StartsWith("Use context-parallel degree "));
  EXPECT_THAT(table.out, HasSubstr("attention and its communication alone"));
  EXPECT_THAT(table.out, HasSubstr("2 of 4 replicas idle"));
  EXPECT_THAT(table.out, ContainsRegex("\n  [1-9][0-9, to]*: simulated on h200x"))
      << "what rows rest on, below them";
}

TEST_F(AdviseVerb, DegreesAreWeighedOfSustainedRunsUnlessAModeIsNamed) {
  std::vector<std::string> job{"-a",         "mask=causal", "-a", "tokens=8K", "-a",
                               "scheme=usp", "--gpus",      "2",  "--json"};
  const auto sustained = nlohmann::json::parse(advise_from(job).out);
  EXPECT_EQ(sustained["mode"], "sustained");
  for (const auto& choice : sustained["choices"]) {
    EXPECT_EQ(choice["basis"], "simulated") << "the records are of bursts";
  }
  job.insert(job.end() - 1, {"-a", "mode=burst"});
  const auto burst = nlohmann::json::parse(advise_from(job).out);
  EXPECT_EQ(burst["mode"], "burst");
  const auto measured = [](const auto& choice) { return choice["basis"] == "measured"; };
  EXPECT_TRUE(std::ranges::any_of(burst["choices"], measured));
}

TEST_F(AdviseVerb, ADegreeThatKeepsMoreThanAGpuHasIsNotTheFirstChoice) {
  std::vector<std::string> job{"-a",         "mask=causal", "-a", "tokens=8K", "-a",
                               "scheme=usp", "--gpus",      "8",  "--layers",  "800"};
  const auto text = advise_from(job).out;
  EXPECT_THAT(text, ContainsRegex("keeps [0-9]+ GiB on a GPU of 140 GiB: for those who recompute"));
  job.emplace_back("--json");
  const auto choices = nlohmann::json::parse(advise_from(job).out)["choices"];
  ASSERT_FALSE(choices.empty());
  EXPECT_EQ(choices.front()["fits"], true);
  EXPECT_EQ(choices.back()["fits"], false);
}

TEST_F(AdviseVerb, WhereNoRecordIsOfTheCardEveryDegreeIsSimulated) {
  const auto result =
      run_longca({"advise", "--records", file_, "--platform", "h800x8_ib200", "--gpus", "2", "-a",
                  "mask=causal", "-a", "tokens=4K", "-a", "scheme=usp", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto choices = nlohmann::json::parse(result.out)["choices"];
  ASSERT_GE(choices.size(), 2U);
  for (const auto& choice : choices) {
    EXPECT_EQ(choice["basis"], "simulated");
    EXPECT_EQ(choice["platform"], "h800x8_ib200");
    EXPECT_EQ(choice["degree"] == 1, choice["scheme"].is_null());
  }
}

TEST_F(AdviseVerb, DegreesOfOwnDocumentsWaitForTheSlowestSequence) {
  write_file(folder_ / "docs.txt", "4096\n64 64 64 64 3840\n2048 2048\n");
  const std::vector<std::string> job{"--documents", "docs.txt",   "--gpus", "2",
                                     "-a",          "scheme=usp", "--json"};
  const auto result = advise_from(job);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["longest"], 4096);
  EXPECT_EQ(json["tokens_per_step"], 8192) << "a sequence for each GPU";
  EXPECT_GE(json["choices"].size(), 2U);
}

TEST_F(AdviseVerb, RefusesImpossibleJobsInOneSentence) {
  expect_refused({"--gpus", "0"}, "--gpus 0 is too small: the minimum is 1");
  expect_refused({"--gpus", "2,4"}, "--gpus 2,4: one number");
  expect_refused({"--layers", "2"}, "give --gpus N");
  expect_refused({"--gpus", "2", "--layers", "0"}, "--layers 0");
  expect_refused({"--gpus", "8", "--tokens-per-step", "10000"}, "the nearest is 8192");
  expect_refused({"--gpus", "8", "--heads", "64:7"}, "no multiple of 7 KV heads");
  expect_refused({"--heads", "64:8", "-a", "heads=64:8"}, "give one of them");
  expect_refused({"--gpus", "8", "-a", "ranks=2"}, "leave -a ranks= out");
  expect_refused({"--gpus", "8", "-a", "tokens=4K,8K"}, "one problem, and 2");
  expect_refused({"--gpus", "8", "--objective", "memory"}, "ranks degrees by time");
}

TEST_F(AdviseVerb, KernelsOfPluginsAreAnsweredAndMeasured) {
  const std::string plugin = std::string(LONGCA_SOURCE_DIR) + "/examples/python_plugin/rowwise.py";
  std::vector<std::string> question{"advise", "--records", file_,    "--measure", "20",
                                    "--out",  "own.jsonl", "--pass", "forward"};
  for (const char* axis : {"device=cpu", "mask=causal", "tokens=33", "heads=2:1", "dim=8",
                           "dtype=float32", "kernel=rowwise_python"}) {
    question.insert(question.end(), {"-a", axis});
  }
  EXPECT_THAT(run_longca(question, wide_).err, HasSubstr("unknown kernel 'rowwise_python'"));
  std::vector<std::string> asked = question;
  asked.insert(asked.end(), {"--plugin", plugin, "--json"});
  const auto result = run_longca(asked, wide_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["choices"].size(), 1U);
  EXPECT_EQ(json["choices"][0]["kernel"], "rowwise_python");
  EXPECT_EQ(json["choices"][0]["basis"], "measured");
  const auto records = read_records(folder_ / "own.jsonl").records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
  // Of other problems the command that would find out loads the plug-in, too.
  const auto open = run_longca({"advise", "--records", "own.jsonl", "-a", "tokens=65", "-a",
                                "dtype=float32", "--pass", "forward", "--plugin", plugin},
                               wide_);
  EXPECT_THAT(open.out, HasSubstr("rowwise_python: "));
  EXPECT_THAT(open.out, HasSubstr(" --plugin " + plugin));
  const auto ranks = run_longca(
      {"advise", "--records", "own.jsonl", "-a", "tokens=65", "-a", "ranks=2", "-a",
       "kernel=rowwise_python", "-a", "dtype=float32", "--pass", "forward", "--plugin", plugin},
      wide_);
  EXPECT_THAT(ranks.out, HasSubstr("longca cp "));
  EXPECT_THAT(ranks.out, HasSubstr(" -a kernel=rowwise_python --plugin " + plugin));
}

TEST_F(AdviseVerb, SaysOfWhichDeviceThereIsNoRecord) {
  const auto result = run_longca(
      {"advise", "--records", file_, "-a", "device=cpu", "-a", "mask=causal", "-a", "tokens=96"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no record of device cpu to advise from"));
}

TEST_F(AdviseVerb, MeasuresWhatIsOpenAndAnswersAgain) {
  const std::vector<std::string> question{"advise",      "-a",     "device=cpu", "-a",
                                          "mask=causal", "-a",     "tokens=96",  "--heads",
                                          "4:2",         "--pass", "forward",    "--json"};
  std::vector<std::string> asked = question;
  // Records of another card alone: nothing is known of this machine.
  asked.insert(asked.end(), {"--records", file_, "--measure", "20", "--out", "own.jsonl"});
  const ProcessOptions here{.directory = folder_.path().string()};
  const auto result = run_longca(asked, here);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["measured"]["changes"][0]["before"], nullptr);
  EXPECT_EQ(json["measured"]["changes"][0]["after"], json["choices"][0]["kernel"]);
  EXPECT_EQ(json["measured"]["left"], 0);
  EXPECT_TRUE(json["unknown"].empty());
  for (const auto& choice : json["choices"]) EXPECT_EQ(choice["basis"], "measured");
  const auto records = read_records(folder_ / "own.jsonl").records;
  ASSERT_EQ(records.size(), json["measured"]["cells"].size());
  EXPECT_EQ(records.size(), 2U) << "flash and naive";
  for (const Record& record : records) EXPECT_TRUE(record.status.ok()) << record.status.reason;
  // The answer stands without measuring again, from that file.
  asked = question;
  asked.insert(asked.end(), {"--records", "own.jsonl"});
  const auto again = nlohmann::json::parse(run_longca(asked, here).out);
  EXPECT_EQ(again["choices"], json["choices"]);
  asked.pop_back();
  asked.insert(asked.end(), {"own.jsonl", "--measure", "20", "--out", "more.jsonl"});
  const auto nothing = nlohmann::json::parse(run_longca(asked, here).out);
  EXPECT_TRUE(nothing["measured"]["cells"].empty()) << "nothing is open";
}

TEST_F(AdviseVerb, MeasuresOnThisMachineOnly) {
  expect_refused({"--measure", "1"}, "--platform asks for h200: run it there");
  expect_refused({"--measure", "0"}, "--measure 0: seconds above 0");
  expect_refused({"--measure", "1", "-a", "ranks=2"}, "on one device");
  expect_refused({"--measure", "1", "--gpus", "2"}, "on one device");
  expect_refused({"--measure", "1", "--documents", "docs.txt"}, "-a lengths=FILE");
  expect_refused({"--out", "own.jsonl"}, "only --measure");
}

TEST_F(AdviseVerb, ACardWithoutRecordsIsOfferedARun) {
  const auto result = run_longca({"advise", "--records", file_, "--platform", "b300"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("they are of NVIDIA H200: run 'longca bench dense"));
}

}  // namespace
}  // namespace longca::testing
