// What a run does to the files that are there, and what becomes of it where it cannot print.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kOneMask = "mask=causal";
constexpr const char* kThreeMasks = "mask=causal,full,sliding_window";

std::size_t cells_in(const fs::path& file) {
  return latest_records(read_records(file).records).size();
}

/// `longca bench` as a line of bash: its words, and what follows them.
ProcessResult bench_line(const fs::path& out, const std::string& more, const std::string& rest) {
  std::string line = "set -o pipefail; \"$LONGCA\" bench --time-limit 0.01 --out " + out.string();
  for (const std::string& word : small_axes()) line += " '" + word + "'";
  return run_process({"bash", "-c", line + " " + more + " " + rest},
                     {.environment = {{"LONGCA", program_of_tests()}}});
}

TEST(Outputs, FewerCellsReplaceMoreOnlyByForce) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  ASSERT_EQ(bench(out, {"-a", kThreeMasks}).exit_code, 0);
  const std::string before = read_file(out);
  const auto refused = bench(out, {"-a", kOneMask});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("holds 6 cells and this run makes 2: add --resume"));
  EXPECT_EQ(read_file(out), before);
  const auto forced = bench(out, {"-a", kOneMask, "--force"});
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_THAT(forced.err, HasSubstr("the records that were there before are in " + out.string()));
  EXPECT_EQ(cells_in(out), 2U);
  EXPECT_EQ(read_file(out.string() + ".bak"), before);
}

TEST(Outputs, AnInterruptInTheFirstSecondsLosesNothing) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  ASSERT_EQ(bench(out, {"-a", "kernel=naive,flash", "-a", "pass=forward"}).exit_code, 0);
  const std::string before = read_file(out);
  // The first cell hangs until the interrupt.
  const auto result = bench_line(
      out, std::string("-a pass=forward -a kernel=fault_hang,naive --plugin ") + FAULT_PLUGIN,
      "2>/dev/null & sleep 1; kill -INT $!; wait $!");
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(read_file(out), before);
}

TEST(Outputs, ARunOfItsOwnAxesHasAFileOfItsOwn) {
  const TempDirectory folder;
  fs::create_directory(folder / "results");
  write_file(folder / "results/quick.jsonl", "");
  std::set<std::string> names;
  for (const char* mask : {"mask=causal", "mask=full", "mask=causal"}) {
    std::vector<std::string> arguments{"bench", "--time-limit", "0.01"};
    for (const auto& argument : small_axes()) arguments.push_back(argument);
    arguments.insert(arguments.end(), {"-a", mask});
    const auto result = run_longca(arguments, {.directory = folder.path().string()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto name = result.out.find("results/quick-");
    ASSERT_NE(name, std::string::npos) << result.out;
    names.insert(result.out.substr(name, result.out.find(' ', name) - name));
  }
  EXPECT_EQ(names.size(), 2U) << "one per set of axes";
  for (const std::string& name : names) EXPECT_EQ(cells_in(folder / name), 2U);
  EXPECT_EQ(read_file(folder / "results/quick.jsonl"), "");
}

TEST(Outputs, AnOutputIsNoInputAndNoOtherOutput) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  ASSERT_EQ(bench(out).exit_code, 0);
  const std::string before = read_file(out);
  const auto traced =
      run_longca({"cp", "--resume",        "--out", out.string(),   "--trace", out.string(),
                  "-a", "scheme=ring_p2p", "-a",    "shard=zigzag", "-a",      "ranks=2",
                  "-a", "mask=causal",     "-a",    "tokens=64",    "-a",      "pass=forward",
                  "-a", "kernel=naive",    "-a",    "device=cpu"});
  EXPECT_EQ(traced.exit_code, 2);
  EXPECT_THAT(traced.err, HasSubstr("--trace would overwrite the records in " + out.string()));
  EXPECT_EQ(read_file(out), before);
  const fs::path plugin = folder / "plugin.so";
  fs::copy_file(FAULT_PLUGIN, plugin);
  const auto over_plugin = bench(plugin, {"--plugin", plugin.string()});
  EXPECT_EQ(over_plugin.exit_code, 2);
  EXPECT_THAT(over_plugin.err, HasSubstr("which --plugin reads"));
}

/// Changes what the records of a file say of where they come from.
void rewrite_env(const fs::path& file, const std::string& pointer, const nlohmann::json& value) {
  std::string text;
  for (Record& record : read_records(file).records) {
    record.env.own()[nlohmann::json::json_pointer(pointer)] = value;
    text += to_line(record) + '\n';
  }
  write_file(file, text);
}

TEST(Outputs, ResumeDoesNotMixOriginsUnlessToldTo) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  for (const auto& [pointer, value, what] :
       {std::tuple{"/cpu/model", "Another CPU", "the machine was Another CPU, "},
        {"/commit", "0123456789abcdef", "commit 0123456789ab"}}) {
    fs::remove(out);
    ASSERT_EQ(bench(out, {"-a", kOneMask}).exit_code, 0);
    rewrite_env(out, pointer, value);
    const std::string before = read_file(out);
    const auto refused = bench(out, {"-a", kThreeMasks, "--resume"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("--resume would mix 2 cells of "));
    EXPECT_THAT(refused.err, HasSubstr(what));
    EXPECT_THAT(refused.err, HasSubstr("add --across to do so\n"));
    EXPECT_EQ(read_file(out), before);
    const auto across = bench(out, {"-a", kThreeMasks, "--resume", "--across"});
    EXPECT_EQ(across.exit_code, 0) << across.err;
    EXPECT_EQ(cells_in(out), 6U);
    EXPECT_THAT(across.out, HasSubstr("\n2 origins, all of "));
  }
}

TEST(Outputs, ResumeDoesNotMixTwoVersionsOfAPlugin) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  const fs::path plugin = folder / "mine.so";
  fs::copy_file(EXAMPLE_PLUGIN, plugin);
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--plugin", plugin.string(), "-a", "kernel=rowwise"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return bench(out, arguments);
  };
  ASSERT_EQ(run({}).exit_code, 0);
  EXPECT_EQ(run({"--resume", "-a", kThreeMasks}).exit_code, 0) << "the same plug-in";
  EXPECT_EQ(bench(out, {"--resume", "-a", kThreeMasks}).exit_code, 0) << "other kernels join";
  write_file(plugin, read_file(plugin) + '\n');  // compiled anew, as it were
  const auto refused = run({"--resume"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("the plug-in was mine.so "));
}

TEST(Outputs, ATimeoutIsTriedAgainWithAHigherLimit) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  const auto run = [&](const char* limit) {
    return bench(out, {"--plugin", FAULT_PLUGIN, "-a", "kernel=fault_hang", "-a", "pass=forward",
                       "--resume", "--case-limit", limit});
  };
  const auto records = [&] { return read_records(out).records; };
  EXPECT_EQ(run("1").exit_code, 0);
  ASSERT_EQ(records().size(), 1U);
  EXPECT_EQ(records()[0].status.code, StatusCode::timeout);
  EXPECT_EQ(run("1").exit_code, 0);
  EXPECT_EQ(run("0.5").exit_code, 0);
  EXPECT_EQ(records().size(), 1U) << "the limit was not raised";
  EXPECT_EQ(run("1.5").exit_code, 0);
  ASSERT_EQ(records().size(), 2U);
  EXPECT_THAT(records()[1].status.reason, HasSubstr("1.5 s"));
}

TEST(Outputs, WithStderrClosedTheRecordsAreRecordsAlone) {
  const TempDirectory folder;
  const auto result = bench_line(folder / "r.jsonl", std::string("-a ") + kThreeMasks, "2>&-");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(cells_in(folder / "r.jsonl"), 6U);
  EXPECT_EQ(bench_line(folder / "s.jsonl", std::string("-a ") + kThreeMasks, ">&- 2>&- <&-").err,
            "");
  EXPECT_EQ(cells_in(folder / "s.jsonl"), 6U);
}

TEST(Outputs, AReaderThatLeavesEndsNoRun) {
  const TempDirectory folder;
  const auto result =
      bench_line(folder / "r.jsonl", std::string("-a ") + kThreeMasks, "2>&1 | head -1");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(cells_in(folder / "r.jsonl"), 6U);
}

TEST(Outputs, AFullStreamEndsNoRunButIsNoSuccess) {
  const TempDirectory folder;
  for (const auto& [streams, stream] :
       {std::pair{">/dev/full", "standard output"}, {"2>/dev/full", ""}}) {
    fs::remove(folder / "r.jsonl");
    const auto result = bench_line(folder / "r.jsonl", std::string("-a ") + kThreeMasks, streams);
    EXPECT_EQ(result.exit_code, 71) << streams;
    EXPECT_EQ(cells_in(folder / "r.jsonl"), 6U) << streams;
    EXPECT_THAT(result.err, HasSubstr(stream));
  }
}

TEST(Outputs, AFailedVerdictIsOneThoughNobodyReadsIt) {
  for (const char* streams : {"| true", ">/dev/full", "2>/dev/full", ">&-", "2>&1 | true"}) {
    const auto result = run_process(
        {"bash", "-c",
         std::string("set -o pipefail; \"$LONGCA\" check --plugin ") + FAULT_PLUGIN +
             " -a kernel=fault_nan -a mask=causal -a tokens=64 -a heads=1 -a dim=16 " + streams},
        {.environment = {{"LONGCA", program_of_tests()}}});
    EXPECT_EQ(result.exit_code, 1) << streams << ": " << result.err;
  }
}

TEST(Outputs, ALimitOnTheSizeOfFilesIsASentence) {
  const TempDirectory folder;
  const fs::path out = folder / "r.jsonl";
  ASSERT_EQ(bench(out).exit_code, 0);
  const auto size = fs::file_size(out);
  const std::string before = read_file(out);
  const auto result =
      run_process({"bash", "-c",
                   "ulimit -f " + std::to_string(size / 1024 + 1) +
                       "; \"$LONGCA\" bench --resume --out " + out.string() + " -a " + kThreeMasks +
                       ",document -a kernel=naive,flash -a tokens=64 -a heads=2:1 -a dim=16 -a "
                       "dtype=float32 --time-limit 0.3"},
                  {.environment = {{"LONGCA", program_of_tests()}}});
  EXPECT_EQ(result.exit_code, 71) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: cannot write " + out.string() + ": File too large\n"));
  EXPECT_TRUE(read_file(out).starts_with(before));
  EXPECT_FALSE(read_records(out).torn);
}

}  // namespace
}  // namespace longca::testing
