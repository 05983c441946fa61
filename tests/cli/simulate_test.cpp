#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/record/record.h"
#include "cost/platform.h"
#include "simulate_verb.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Simulate, RecordsACellOfEveryScheme) {
  const TempDirectory folder;
  const std::string out = folder.path() / "s.jsonl";
  const auto result =
      simulate({"-a", "scheme=all", "-a", "shard=best", "--out", out}, "h100x8_ib400");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, Not(HasSubstr("too few repetitions"))) << "there are none";
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 6U);
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_EQ(record.c.mode, "simulated");
    EXPECT_EQ(record.c.platform, "h100x8_ib400");
    EXPECT_EQ(record.c.transport, "nccl");
    EXPECT_EQ(record.rank_times_ms.size(), 16U);
    EXPECT_TRUE(record.samples_ms.empty());
    EXPECT_EQ(record.metrics.at("bytes_sent"), record.metrics.at("bytes_formula"));
    EXPECT_GE(record.metrics.at("time_ms"), record.metrics.at("compute_ms"));
    EXPECT_GE(record.metrics.at("imbalance"), 1);
  }
}

/// `cp` plans alike on all cards, and a faster link does not change what it does.
TEST(Simulate, APlanDoesNotDependOnThePlatform) {
  const TempDirectory folder;
  const auto bytes = [&](const std::string& platform, const std::string& set) {
    const std::string out = folder.path() / (platform + set.substr(0, 5) + ".jsonl");
    const auto result =
        simulate({"-a", "scheme=magi", "-a", "shard=best", "-a", "ranks=8", "-a",
                  "tokens_per_rank=8K", "-a", "mask=causal_document", "--set", set, "--out", out},
                 platform);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(out).records.at(0).metrics.at("bytes_sent");
  };
  const double expected = bytes("h200x8", "links.bytes_per_second=378e9");
  EXPECT_EQ(bytes("h100x8_ib400", "links.bytes_per_second=378e9"), expected);
  EXPECT_EQ(bytes("h100x8_ib400", "memory.bytes_per_second=1e12"), expected);
}

TEST(Simulate, ASetFigureChangesTheTimeAndTheName) {
  const TempDirectory folder;
  const std::string out = folder.path() / "s.jsonl";
  const auto time = [&](const std::vector<std::string>& added) {
    std::vector<std::string> arguments = {
        "-a", "scheme=ring_allgather", "-a", "shard=best", "--force", "--out", out};
    arguments.insert(arguments.end(), added.begin(), added.end());
    EXPECT_EQ(simulate(arguments, "h100x8_ib400").exit_code, 0);
    return read_records(out).records.at(0);
  };
  const Record before = time({});
  const Record slower = time({"--set", "fabric.nic_bytes_per_second=1e9"});
  EXPECT_GT(slower.metrics.at("time_ms"), before.metrics.at("time_ms"));
  EXPECT_NE(slower.c.platform, before.c.platform);
  EXPECT_EQ(slower.notes.at("set"), "fabric.nic_bytes_per_second=1e9");
}

TEST(Simulate, ExplainsAndTracesACell) {
  const TempDirectory folder;
  const std::string trace = folder.path() / "t.json";
  const auto result = simulate({"-a", "scheme=ring_p2p", "-a", "shard=best", "--out",
                                folder.path() / "s.jsonl", "--trace", trace, "--explain"},
                               "h800x8_ib200");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(" computes for "), HasSubstr("rank 15 waits "),
                                HasSubstr(" of keys "), HasSubstr(" over the NIC\n")));
  const auto lines = std::ranges::count(result.out.substr(result.out.find("kernel=slice ")), '\n');
  EXPECT_EQ(result.err, "longca: what 1 cell waits for: " + std::to_string(lines) + " lines\n");
  const auto events = nlohmann::json::parse(std::ifstream(trace)).at("traceEvents");
  int ranks = 0;
  for (const auto& event : events) {
    if (event.at("name") == "process_name") ++ranks;
  }
  EXPECT_EQ(ranks, 16);
}

TEST(Simulate, ComparesWithTheCellsOfAFile) {
  const TempDirectory folder;
  const std::string measured = folder.path() / "m.jsonl";
  ASSERT_EQ(simulate({"-a", "scheme=ring_p2p,magi", "-a", "shard=best", "--out", measured},
                     "h100x8_ib400")
                .exit_code,
            0);
  // The same cells as if they had been measured, one of them half as fast.
  auto records = read_records(measured).records;
  std::ofstream file(measured);
  for (Record& record : records) {
    record.c.mode = "burst";
    record.c.platform.reset();
    if (record.c.scheme == "magi") record.metrics["time_ms"] *= 2;
    file << to_line(record) << '\n';
  }
  file.close();
  const auto result =
      run_longca({"simulate", "--platform", "h100x8_ib400", "--against", measured, "--quiet",
                  "--out", folder.path() / "s.jsonl", "--comparison", folder.path() / "c.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto comparison = nlohmann::json::parse(read_file(folder.path() / "c.json"));
  const auto& all = comparison["errors"].back();
  EXPECT_EQ(all["by"], "all");
  EXPECT_NEAR(all["mean_pct"].get<double>(), 25, 1e-9);
  EXPECT_NEAR(all["worst_pct"].get<double>(), -50, 1e-9);
  EXPECT_NEAR(all["p90_pct"].get<double>(), 50, 1e-9);
  EXPECT_EQ(all["within_6_pct"], 50);
  EXPECT_EQ(comparison["order"]["pairs"], 1);
  std::map<std::string, double> simulated;
  for (const Record& record : read_records(folder.path() / "s.jsonl").records) {
    simulated[*record.c.scheme] = record.metrics.at("time_ms");
  }
  const double ring = simulated.at("ring_p2p"), magi = 2 * simulated.at("magi");
  const double chosen = simulated.at("magi") < ring ? magi : ring;
  const double regret = 100 * (chosen / std::min(ring, magi) - 1);
  EXPECT_EQ(comparison["choice"]["problems"], 1);
  EXPECT_EQ(comparison["choice"]["within_3_pct"], regret <= 3 ? 1 : 0);
  EXPECT_NEAR(comparison["choice"]["mean_regret_pct"].get<double>(), regret, 1e-9);
  EXPECT_NEAR(comparison["choice"]["worst_regret_pct"].get<double>(), regret, 1e-9);
  EXPECT_THAT(result.out, AllOf(HasSubstr("+0.0 %"), HasSubstr("-50.0 %")));
  EXPECT_THAT(result.out, HasSubstr("25.0 %   -25.0 %    50.0 %   -50.0 %     50 %"));
  EXPECT_THAT(result.out, HasSubstr("order of schemes right in "));
}

/// Sums up what --explain says of each pass, by the number behind `word`.
double explained_ms(const std::string& text, const std::string& word) {
  std::istringstream lines(text.substr(text.find("kernel=slice mask=")));
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t found = line.find(word);
    if (found != line.npos) sum += std::stod(line.substr(found + word.size()));
  }
  return sum;
}

/// A rank begins its backward pass where its own forward pass ends, so that both are explained
/// from one to the other and are less than the sum of the slowest of either.
TEST(Simulate, AStepIsExplainedFromItsEndToItsStart) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const auto result = simulate(
      {"-a", "scheme=usp", "-a", "shard=best", "-a", "ranks=32", "-a", "mask=causal_document", "-a",
       "tokens_per_rank=8K", "-a", "pass=forward,backward,step", "--explain", "--out", out},
      "h200x8_ib400");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::map<Pass, double> time_ms;
  for (const Record& record : read_records(out).records) {
    time_ms[record.c.pass] = record.metrics.at("time_ms");
  }
  const double all = time_ms[Pass::forward] + time_ms[Pass::backward] + time_ms[Pass::step];
  const auto lines = std::ranges::count(result.out, '\n');
  const double rounding = 0.0005 * static_cast<double>(lines);
  EXPECT_NEAR(explained_ms(result.out, ": forward ") + explained_ms(result.out, ": backward "), all,
              rounding);
  EXPECT_NEAR(explained_ms(result.out, " computes for ") + explained_ms(result.out, " waits "), all,
              rounding);
  EXPECT_LT(time_ms[Pass::step], 0.95 * (time_ms[Pass::forward] + time_ms[Pass::backward]));
  EXPECT_GT(time_ms[Pass::step], time_ms[Pass::backward]);
}

/// Cells of an own page are not those of the program's platform of that name.
TEST(Simulate, APageOfOtherFiguresThanTheProgramsHasANameOfItsOwn) {
  const TempDirectory folder;
  const std::string page = folder / "p.toml";
  const auto record_of = [&](const std::string& text, std::vector<std::string> added = {}) {
    write_file(page, text);
    const std::string out = folder / "s.jsonl";
    for (const char* word :
         {"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=4", "--force", "--out"}) {
      added.emplace_back(word);
    }
    added.push_back(out);
    EXPECT_EQ(simulate(added, page).exit_code, 0);
    return read_records(out).records.at(0);
  };
  cost::Platform platform = cost::load_platform("h200");
  const Record same = record_of(cost::to_toml(platform));
  EXPECT_EQ(same.c.platform, "h200");
  platform.links.bytes_per_second = 1e9;
  const Record own = record_of(cost::to_toml(platform));
  EXPECT_THAT(*own.c.platform, ::testing::MatchesRegex("h200-own[0-9a-f]+"));
  EXPECT_EQ(own.notes.at("page"), page);
  platform.links.bytes_per_second = 2e9;
  EXPECT_NE(record_of(cost::to_toml(platform)).c.key(), own.c.key());
  const Record set = record_of(cost::to_toml(platform), {"--set", "links.bytes_per_second=1e9"});
  EXPECT_EQ(set.c.key(), own.c.key()) << "the same figures";
  EXPECT_FALSE(own.notes.contains("links"));
  platform.name = "mine";
  EXPECT_EQ(record_of(cost::to_toml(platform)).c.platform, "mine");
  platform.links.measured = "of h200, not measured here: copies";
  EXPECT_EQ(record_of(cost::to_toml(platform)).notes.at("links"), "of h200, not measured here");
}

/// A page that was calibrated with a plug-in serves without it, so that this is no error.
TEST(Simulate, RatesOfAnUnknownKernelAreNamed) {
  const TempDirectory folder;
  const std::string page = folder / "p.toml";
  cost::Platform platform = cost::load_platform("h200");
  platform.rates["fa33"].forward = cost::KernelPassRates{
      .measured = "here", .flops_per_second = 1e14, .keys_per_row = 1, .seconds_per_call = 1e-6};
  write_file(page, cost::to_toml(platform));
  const auto result = simulate(
      {"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=2", "--out", folder / "s.jsonl"},
      page);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("has rates of 'fa33', and there is no such kernel here (did "
                                    "you mean 'fa3'?)"));
}

/// A GPU keeps its share of the NICs, and the record says so.
TEST(Simulate, NicsFollowTheGpusOfANode) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const auto record_of = [&](const std::vector<std::string>& figures) {
    std::vector<std::string> arguments = {"-a",      "scheme=ring_p2p", "-a", "shard=best",
                                          "--force", "--out",           out};
    for (const std::string& figure : figures) {
      arguments.emplace_back("--set");
      arguments.push_back(figure);
    }
    EXPECT_EQ(simulate(arguments, "h100x8_ib400").exit_code, 0);
    return read_records(out).records.at(0);
  };
  const Record scaled = record_of({"gpus_per_node=4"});
  EXPECT_EQ(scaled.notes.at("nics"), "fabric.nics is 4 with node.gpus=4: the page has 8 for 8");
  const Record set = record_of({"gpus_per_node=4", "fabric.nics=4"});
  EXPECT_FALSE(set.notes.contains("nics"));
  EXPECT_EQ(set.metrics.at("time_ms"), scaled.metrics.at("time_ms"));
  EXPECT_LT(record_of({"gpus_per_node=4", "fabric.nics=8"}).metrics.at("time_ms"),
            scaled.metrics.at("time_ms"));
}

/// Across nodes peer that nobody asked for is nccl; asked for, it is what the cell cannot do.
TEST(Simulate, PeerThatWasAskedForStaysInsideOneHost) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const std::vector<std::string> cells = {
      "-a", "scheme=ring_p2p", "-a",    "shard=best", "-a", "ranks=8,16",
      "-a", "transport=peer",  "--out", out};
  ASSERT_EQ(simulate(cells, "h100x8_ib400").exit_code, 0);
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_TRUE(records[0].status.ok());
  EXPECT_EQ(records[1].c.transport, "peer");
  EXPECT_EQ(records[1].status.code, StatusCode::unsupported);
  EXPECT_EQ(records[1].status.reason,
            "the transport peer works inside one host, and 16 ranks are on 2 nodes of 8 GPUs: "
            "there it is nccl");
  const auto advice =
      run_longca({"advise", "--platform", "h100x8_ib400", "-a", "mask=causal", "-a", "tokens=16K",
                  "-a", "ranks=16", "-a", "scheme=ring_p2p", "-a", "transport=peer,nccl"});
  EXPECT_THAT(advice.out, HasSubstr("the transport peer works inside one host, and 16 ranks"));
}

TEST(Simulate, NcclIsNotedToBeTimedAsPeer) {
  const TempDirectory folder;
  const std::string out = folder / "s.jsonl";
  const auto links = [&](const std::string& transport) {
    const auto result = simulate({"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=4",
                                  "-a", "transport=" + transport, "--force", "--out", out},
                                 "h200x8");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_records(out).records.at(0).notes["links"];
  };
  EXPECT_EQ(links("peer"), "");
  EXPECT_EQ(links("nccl"), "as of peer: NCCL's protocols are not simulated");
}

/// Cells without pauses are simulated as such, beside those with them and apart from these.
TEST(Simulate, ASustainedCellIsACellOfItsOwn) {
  const TempDirectory folder;
  const std::string out = folder.path() / "s.jsonl";
  const auto both = simulate(
      {"-a", "scheme=ring_p2p", "-a", "shard=best", "-a", "mode=burst,sustained", "--out", out},
      "h100x8_ib400");
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("\nsimulated_mode sustained\n")) << "a table of its own";
  auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].c.simulated_mode, std::nullopt);
  EXPECT_EQ(records[1].c.simulated_mode, "sustained");
  const std::string measured = folder.path() / "m.jsonl";
  std::ofstream file(measured);
  for (Record& record : records) {
    EXPECT_EQ(record.c.mode, "simulated");
    record.c.mode = record.c.simulated_mode.value_or("burst");
    record.c.simulated_mode.reset();
    record.c.platform.reset();
    file << to_line(record) << '\n';
  }
  file.close();
  EXPECT_NE(records[0].metrics.at("time_ms"), records[1].metrics.at("time_ms"));
  const auto result = run_longca({"simulate", "--platform", "h100x8_ib400", "--against", measured,
                                  "--quiet", "--comparison", folder.path() / "c.json", "--out",
                                  folder.path() / "again.jsonl"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto comparison = nlohmann::json::parse(read_file(folder.path() / "c.json"));
  EXPECT_EQ(comparison["errors"].back()["cells"], 2);
  EXPECT_EQ(comparison["errors"].back()["worst_pct"], 0);
  EXPECT_EQ(comparison["order"]["pairs"], 0);
}

/// A cell of before kernels merged results is simulated with the passes that it had.
TEST(Simulate, AMeasuredCellIsMergedAsItsRecordSays) {
  const TempDirectory folder;
  const std::string out = folder.path() / "s.jsonl";
  const std::string measured = folder.path() / "m.jsonl";
  const auto made = run_longca(
      {"simulate",     "--platform", "h200x8",  "-a", "kernel=slice",    "-a", "mask=causal", "-a",
       "tokens=16K",   "-a",         "ranks=2", "-a", "scheme=ring_p2p", "-a", "shard=best",  "-a",
       "pass=forward", "--quiet",    "--out",   out});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  Record record = read_records(out).records.at(0);
  record.c.mode = "burst";
  record.c.platform.reset();
  const auto error_pct = [&](const std::string& merging) {
    record.notes["merging"] = merging;
    write_file(measured, to_line(record) + '\n');
    const auto result =
        run_longca({"simulate", "--platform", "h200x8", "--against", measured, "--quiet", "--force",
                    "--comparison", folder.path() / "c.json", "--out", folder.path() / "a.jsonl"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto comparison = nlohmann::json::parse(read_file(folder.path() / "c.json"));
    return comparison["errors"].back()["worst_pct"].get<double>();
  };
  EXPECT_EQ(error_pct("by the kernel's last call"), 0);
  EXPECT_GT(error_pct("after the kernel, up to 4 results in one pass"), 1);
}

TEST(Simulate, LeavesOutNothingThatOnlyThisMachineLacks) {
  const TempDirectory folder;
  const std::string suite = folder.path() / "s.toml";
  write_file(suite,
             "only_what_runs = true\n[axes]\nkernel = [\"slice\", \"flash\"]\nmask = \"causal\"\n"
             "tokens = 8192\npass = \"forward\"\nranks = 8\nscheme = \"ulysses\"\n"
             "[[exceptions]]\nwhen = { kernel = \"slice\" }\nset = { device = \"cuda\" }\n");
  const std::string out = folder.path() / "s.jsonl";
  const auto result =
      run_longca({"simulate", suite, "--platform", "h200x8", "--quiet", "--out", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U) << "flash runs on CPUs";
  EXPECT_EQ(records.front().c.kernel, "slice");
}

TEST(Simulate, BadInputIsOneSentence) {
  expect_bad_input(simulate({}, "h100x8_ib40"),
                   "unknown platform 'h100x8_ib40' (did you mean 'h100x8_ib400'?)");
  expect_bad_input(simulate({}, "h200x8"),
                   "the platform h200x8 has 8 GPUs, and 16 ranks are asked for");
  expect_bad_input(simulate({"--comparison", "c.json"}, "h100x8_ib400"),
                   "--comparison c.json: of the cells of --against FILE, which is not given");
  expect_bad_input(simulate({"--set", "fabric.nicks=2"}, "h100x8_ib400"),
                   "unknown key 'fabric.nicks' (did you mean 'fabric.nics'?); keys of fabric are ");
  expect_bad_input(simulate({"--set", "kernel.forward.keys_per_row=9"}, "h100x8_ib400"),
                   "'kernel.forward.keys_per_row' changes no simulated time");
  expect_bad_input(simulate({"--set", "fabric.oversubscription=0.5"}, "h100x8_ib400"),
                   "'fabric.oversubscription' is 0.5, not 1 or more: it is the rate of a node's");
  expect_bad_input(simulate({"--set", "links.bytes_per_second=0"}, "h100x8_ib400"),
                   "'links.bytes_per_second' is 0, not a finite number above 0");
  expect_bad_input(simulate({"-a", "scheme=ulysses", "-a", "heads=8"}, "h100x8_ib400"),
                   "no cell can be simulated: 16 ranks share the heads");
  expect_bad_input(simulate({}, "records.jsonl"), "it is one of h100x8_ib400, ");
  expect_bad_input(simulate({}, "records.jsonl"), ", or a page, FILE.toml");
  expect_bad_input(simulate({"-a", "dtype=float32"}, "h100x8_ib400"),
                   "no cell can be simulated: slice has no float32, only bfloat16");
  expect_bad_input(simulate({"-a", "dim=257"}, "h100x8_ib400"), "slice has no head dimension 257");
  expect_bad_input(simulate({"-a", "transport=mpi"}, "h100x8_ib400"),
                   "the transport mpi does not carry messages between GPUs: there it is nccl");
  expect_bad_input(simulate({"-a", "kernel=cudnn"}, "h100x8_ib400"),
                   "those of cudnn come from its records on one GPU, by --rates FILE (simulate)");
  expect_bad_input(simulate({"--rates", "/dev/null"}, "h100x8_ib400"),
                   "--rates /dev/null: no cell on one GPU that is ok");
  expect_bad_input(simulate({"--trace", "t.json", "-a", "scheme=all"}, "h100x8_ib400"),
                   "--trace: one cell is traced, and there are 11");
  expect_bad_input(simulate({"-a", "device=cpu"}, "h100x8_ib400"),
                   "device cpu: the cells are of the platform h100x8_ib400, whose device is cuda");
  expect_bad_input(run_longca({"cp", "-a", "platform=h200x8"}),
                   "platform is no axis that can be given");
}

/// One cell that takes ms, and one whose plans take minutes: nothing looks for a signal meanwhile.
TEST(Simulate, AnInterruptEndsACellThatTakesMinutes) {
  for (const auto& [signal, code] : {std::pair{"INT", 130}, {"TERM", 143}}) {
    const TempDirectory folder;
    const std::string out = folder / "s.jsonl";
    const char* script =
        "trap '' INT; (trap - INT; ulimit -t 60; exec \"$LONGCA\" simulate --platform h100x8_ib400 "
        "--quiet -a kernel=slice -a scheme=magi -a shard=document_zigzag -a ranks=8,1K"
        " -a lengths=pile -a tokens_per_rank=8K -a pass=forward -a mask=document --out \"$OUT\") &"
        " while ! grep -q ranks=8 \"$OUT\" 2>/dev/null; do sleep 0.05; done;"
        " sleep 0.2; kill -\"$SIGNAL\" $!; wait $!";
    const auto result = run_process(
        {"bash", "-c", script},
        {.environment = {{"LONGCA", program_of_tests()}, {"OUT", out}, {"SIGNAL", signal}},
         .timeout_s = 60});
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr("interrupted; 1 of 2 cells are in " + out + "\n"));
    EXPECT_EQ(read_records(out).records.size(), 1U);
  }
}

TEST(Simulate, WhatNoSchemeTakesIsSaidBeforeMissingTimes) {
  expect_bad_input(simulate({"-a", "kernel=naive", "-a", "scheme=ring_p2p", "-a", "shard=zigzag",
                             "-a", "dim=192:128"},
                            "h200x8_ib400"),
                   "no scheme of context parallelism takes a v of another dimension");
}

TEST(Simulate, AnyNumberOfSmsIsSimulatedOrRefused) {
  const TempDirectory folder;
  const auto run = [&](const std::string& sms) {
    return simulate({"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "--force", "--out",
                     folder / "s.jsonl", "--set", "device.sms=" + sms},
                    "h100x8_ib400");
  };
  EXPECT_EQ(run("1").exit_code, 0);
  EXPECT_EQ(run("65536").exit_code, 0);
  expect_bad_input(run("65537"), "'device.sms' is 65537, not a whole number from 1 to 65536");
}

TEST(Simulate, AnOutputIsNotThePageOfThePlatform) {
  const TempDirectory folder;
  const std::string page = folder / "p.toml";
  const std::string before = cost::to_toml(cost::default_platform());
  write_file(page, before);
  const auto result = simulate({"-a", "scheme=ring_p2p", "-a", "shard=zigzag", "-a", "ranks=4",
                                "--out", folder / "s.jsonl", "--trace", page},
                               page);
  expect_bad_input(result, "--trace would overwrite " + page + ", which --platform reads");
  EXPECT_EQ(read_file(page), before);
}

TEST(Simulate, PagesHaveAnEndAndADepth) {
  const TempDirectory folder;
  std::filesystem::create_symlink("/dev/zero", folder / "zero.toml");
  expect_bad_input(simulate({}, folder / "zero.toml"), "/zero.toml' is no regular file");
  std::string key;
  for (int i = 0; i < 50'000; ++i) key += "a.";
  for (const char* first : {"", "platform = \"h200\"\n"}) {
    write_file(folder / "deep.toml", first + key + "a = 1\n");
    expect_bad_input(simulate({}, folder / "deep.toml"), "keys and values are nested deeper");
  }
}

}  // namespace
}  // namespace longca::testing
