// `longca bench` and `longca check` from outside: files, exit codes, what is printed where.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/bench_run.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

std::set<std::string> keys_of(const std::filesystem::path& file) {
  std::set<std::string> keys;
  for (const Record& record : read_records(file).records) {
    EXPECT_TRUE(keys.insert(record.c.key()).second) << "twice: " << record.c.key();
  }
  return keys;
}

TEST(Bench, RecordsWhatItMeasures) {
  const TempDirectory folder;
  const auto result = bench(folder / "r.jsonl", {"-a", "mask=causal,block_sparse"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 4U);
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    for (const char* name : {"time_ms", "tflops", "area", "plan_ms", "peak_bytes",
                             "workspace_bytes", "error_o", "verified_fraction"}) {
      EXPECT_TRUE(record.metrics.contains(name)) << name;
    }
    EXPECT_EQ(record.metrics.contains("error_dq"), record.c.pass == Pass::backward);
    // The stopping rule's minimum where caches take long to flush: StoppingRule has its own tests.
    EXPECT_GE(record.samples_ms.size(), 2U);
    EXPECT_EQ(record.env->at("argv").at(1), "bench");
    EXPECT_EQ(record.at.size(), std::string("2000-01-01T00:00:00Z").size());
  }
  const Record& forward = records.front();
  EXPECT_EQ(forward.metrics.at("area"), 64 * 65 / 2);
  const double flops = 4.0 * 2080 * 2 * 16;
  EXPECT_NEAR(forward.metrics.at("tflops"), flops / forward.metrics.at("time_ms") / 1e9, 1e-9);
  // Tensors of the pass: q and o [64, 2, 16], k and v [64, 1, 16], lse [2, 64], float32.
  const double tensors = 4 * (2 * 64 * 2 * 16 + 2 * 64 * 16 + 2 * 64);
  EXPECT_GE(forward.metrics.at("peak_bytes"), tensors);
  EXPECT_LE(forward.metrics.at("peak_bytes"),
            tensors + forward.metrics.at("workspace_bytes") + 65536);
}

TEST(Bench, SelectsBlocksByScores) {
  const TempDirectory folder;
  const auto result = bench(folder / "r.jsonl", {"-a", "mask=block_sparse,block_sparse_variable",
                                                 "-a", "kernel=naive,flash",
                                                 "-a", "selection=all",
                                                 "-a", "inputs=all",
                                                 "-a", "block_causal=0,1",
                                                 "-a", "block_heads=all",
                                                 "-a", "tokens=100",
                                                 "-a", "heads=4:2",
                                                 "-a", "density=0.3",
                                                 "-a", "pass=forward"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 2U * 2 * 2 * 2 * 2 * 5);
  for (const Record& record : records) {
    const Case& c = record.c;
    EXPECT_TRUE(record.status.ok()) << c.key() << ": " << record.status.reason;
    EXPECT_EQ(record.metrics.contains("selection_ms"), c.selects_by_scores());
    ASSERT_EQ(record.metrics.contains("kept_mass"), c.selects_by_scores() || c.inputs);
    if (c.selects_by_scores()) {
      EXPECT_DOUBLE_EQ(record.metrics.at("end_to_end_ms"), record.metrics.at("selection_ms") +
                                                               record.metrics.at("plan_ms") +
                                                               record.metrics.at("time_ms"));
      EXPECT_GT(record.metrics.at("selection_ms"), 0);
    }
    if (record.metrics.contains("kept_mass")) {
      EXPECT_GT(record.metrics.at("kept_mass"), 0);
      EXPECT_LE(record.metrics.at("kept_mass"), 1 + 1e-12);
      EXPECT_GT(record.metrics.at("error_full"), 0);
    }
  }
}

/// Defined, if odd, sizes of blocks: one that is larger than the sequence is the whole of it, and
/// at least one block is always kept.
TEST(Bench, TakesBlocksOfAnySize) {
  const TempDirectory folder;
  const auto result =
      bench(folder / "r.jsonl",
            {"-a", "mask=block_sparse,block_sparse_variable", "-a", "block=1,7,1000", "-a",
             "density=0.001", "-a", "block_causal=0,1", "-a", "selection=all", "-a", "tokens=65"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  bool some_rows_are_empty = false;
  for (const Record& record : read_records(folder / "r.jsonl").records) {
    EXPECT_TRUE(record.status.ok()) << record.c.key() << ": " << record.status.reason;
    const bool noted = record.notes.contains("rows_without_keys");
    some_rows_are_empty = some_rows_are_empty || noted;
    EXPECT_TRUE(!noted || record.c.block_causal) << record.c.key();
    if (record.c.mask == "block_sparse" && record.c.block == 1000) {
      EXPECT_EQ(record.metrics.at("area"), record.c.block_causal ? 65 * 66 / 2 : 65 * 65);
    }
  }
  EXPECT_TRUE(some_rows_are_empty);
}

TEST(Bench, WithoutAGpuItsCellsAreUnavailable) {
  const Support& gpu = Device::available(DeviceKind::cuda);
  if (gpu.ok()) GTEST_SKIP() << "there is a GPU";
  const TempDirectory folder;
  const auto result = bench(folder / "r.jsonl", {"-a", "device=cuda,cpu", "-a", "pass=forward"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const Record& record : read_records(folder / "r.jsonl").records) {
    const bool on_gpu = record.c.device == "cuda";
    EXPECT_EQ(record.status.code, on_gpu ? StatusCode::unavailable : StatusCode::ok);
    EXPECT_EQ(record.status.reason, on_gpu ? gpu.reason : "");
    EXPECT_FALSE(record.trace);
  }
}

TEST(Bench, AKernelOfTheCpuAloneHasNoFormForAGpu) {
  const TempDirectory folder;
  bench(folder / "r.jsonl", {"-a", "device=cuda", "-a", "kernel=flash", "-a", "pass=forward"});
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::unsupported);
  EXPECT_EQ(records[0].status.reason, "flash runs on cpu, not on cuda");
}

TEST(Bench, TheCpuHasNoGraphs) {
  const TempDirectory folder;
  bench(folder / "r.jsonl", {"-a", "mode=graph", "-a", "pass=forward"});
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::unsupported);
  EXPECT_EQ(records[0].status.reason,
            "mode graph replays a CUDA graph, which the CPU does not have");
}

TEST(Bench, ProgressGoesToStderrTheTableToStdout) {
  const TempDirectory folder;
  const auto loud = bench(folder / "r.jsonl");
  EXPECT_THAT(loud.err, HasSubstr("[1/2] naive causal 64 forward: ok, "));
  EXPECT_THAT(loud.out, HasSubstr("causal"));
  const auto quiet = bench(folder / "r.jsonl", {"--quiet"});
  EXPECT_EQ(quiet.err, "");
}

TEST(Bench, WithoutOutItLeavesResultsOfTheSuite) {
  const TempDirectory folder;
  std::string axes;
  for (const std::string& word : small_axes()) {
    const auto equals = word.find('=');
    if (equals == word.npos) continue;
    axes += word.substr(0, equals) + " = \"" + word.substr(equals + 1) + "\"\n";
  }
  write_file(folder / "small.toml", "description = \"small\"\n[axes]\n" + axes);
  const auto result = run_longca({"bench", "small.toml", "--time-limit", "0.01"},
                                 {.directory = folder.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_records(folder / "results/small.jsonl").records.size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder / "results/small.html"));
}

TEST(Bench, ReplacesOnlyRecordFiles) {
  const TempDirectory folder;
  const auto out = folder / "r.jsonl";
  bench(out, {"-a", "pass=forward"});
  bench(out, {"-a", "mask=causal,full"});
  EXPECT_EQ(keys_of(out).size(), 4U);
  write_file(out, "a letter\n");
  const auto refused = bench(out);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(read_file(out), "a letter\n");
  EXPECT_EQ(bench(out, {"--resume"}).exit_code, 2);
  EXPECT_EQ(read_file(out), "a letter\n");
  EXPECT_EQ(bench("/nowhere/r.jsonl").exit_code, 2);
}

TEST(Bench, ResumeRunsWhatIsMissing) {
  const TempDirectory folder;
  const auto out = folder / "r.jsonl";
  EXPECT_EQ(bench(out, {"--resume", "-a", "mask=causal"}).exit_code, 0);
  const std::string first = read_file(out);
  write_file(out, first + "{\"schema\":1,\"key\":\"torn");
  const auto result = bench(out, {"--resume", "-a", "mask=causal,full"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(read_file(out).starts_with(first));
  EXPECT_EQ(keys_of(out).size(), 4U);
  EXPECT_THAT(result.err, HasSubstr("[1/2] "));
  EXPECT_THAT(result.out, HasSubstr("causal"));
  const std::string complete = read_file(out);
  EXPECT_EQ(bench(out, {"--resume", "-a", "mask=causal,full"}).exit_code, 0);
  EXPECT_EQ(read_file(out), complete);
}

TEST(Bench, DryRunWritesNothing) {
  const TempDirectory folder;
  const auto result = bench(folder / "r.jsonl", {"--dry-run"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("2 cells of 1 problem,"));
  EXPECT_FALSE(std::filesystem::exists(folder / "r.jsonl"));
}

TEST(Bench, ADryRunOfTheRestListsTheRest) {
  const TempDirectory folder;
  const auto out = folder / "r.jsonl";
  bench(out, {"-a", "mask=causal"});
  const std::string before = read_file(out);
  const auto rest = bench(out, {"--resume", "--dry-run", "-a", "mask=causal,full"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("2 cells of 1 problem,"));
  EXPECT_THAT(rest.out, ::testing::Not(HasSubstr("causal ")));
  EXPECT_THAT(rest.err, HasSubstr("has 2 of the 4 cells"));
  const auto none = bench(out, {"--resume", "--dry-run", "-a", "mask=causal"});
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("has 2 of the 2 cells"));
  EXPECT_EQ(read_file(out), before);
}

TEST(Bench, ARecordWithoutItsNewlineIsKeptOrNamed) {
  const TempDirectory folder;
  const auto out = folder / "r.jsonl";
  bench(out, {"-a", "mask=causal"});
  std::string lines = read_file(out);
  std::erase(lines, '\n');
  write_file(out, lines);
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--resume"}, {}}) {
    const auto refused = bench(out, options);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("r.jsonl:1: not a record of longca"));
    EXPECT_EQ(read_file(out), lines);
  }
}

TEST(Bench, SaysWhichOfSeveralValuesCounts) {
  const TempDirectory folder;
  const auto result =
      bench(folder / "r.jsonl", {"--dry-run", "-a", "mask=full", "-a", "mask=causal"});
  EXPECT_THAT(result.err, HasSubstr("-a mask is given"));
  EXPECT_THAT(result.err, HasSubstr("the last one counts, mask=causal"));
  EXPECT_EQ(bench("-").exit_code, 2);
}

TEST(Bench, StrictFailsOnABadCell) {
  const TempDirectory folder;
  const std::vector<std::string> faulty{"--plugin", FAULT_PLUGIN, "-a", "kernel=fault_nan"};
  EXPECT_EQ(bench(folder / "r.jsonl", faulty).exit_code, 0);
  std::vector<std::string> strict = faulty;
  strict.emplace_back("--strict");
  EXPECT_EQ(bench(folder / "r.jsonl", strict).exit_code, 1);
}

TEST(Bench, NothingThatRanIsNoSuccessWhereSuccessIsAsked) {
  const TempDirectory folder;
  const auto code = [&](const char* flag, const char* kernel) {
    const std::string kernels = std::string("kernel=") + kernel;
    return bench(folder / "r.jsonl", {flag, "--force", "-a", kernels, "-a", "dtype=float32"})
        .exit_code;
  };
  // slice runs on GPUs, these cells on a CPU.
  EXPECT_EQ(code("--strict", "slice"), 1);
  EXPECT_EQ(code("--require-ok", "slice"), 1);
  EXPECT_EQ(code("--quiet", "slice"), 0);
  EXPECT_EQ(code("--strict", "naive,slice"), 0);
  EXPECT_EQ(code("--require-ok", "naive,slice"), 1);
  EXPECT_EQ(code("--require-ok", "naive"), 0);
}

TEST(Bench, TooLargeIsOutOfMemoryBeforeItIsTried) {
  const TempDirectory folder;
  const auto result = bench(folder / "r.jsonl",
                            {"-a", "tokens=16M", "-a", "pass=forward", "--memory-limit", "1000"});
  EXPECT_EQ(result.exit_code, 0);
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::oom);
  // Without a reference, whose estimate takes time per token.
  EXPECT_THAT(records[0].status.reason,
              ::testing::MatchesRegex("inputs and outputs of [0-9]+ MiB pass the memory limit of "
                                      "1000 MiB"));
}

TEST(Bench, AnInterruptKeepsWhatIsDoneAndSaysHowToGoOn) {
  const TempDirectory folder;
  const auto out = folder / "r.jsonl";
  // The shell interrupts the run while its second cell hangs: twice, as `timeout` signals a process
  // and then its group.
  const std::string script =
      "trap '' INT; (trap - INT; exec " + std::string(LONGCA_PROGRAM) + " bench --out " +
      out.string() + " --plugin " + FAULT_PLUGIN +
      " -a kernel=naive,fault_hang -a mask=causal -a tokens=64 -a heads=2:1 "
      "-a dim=16 -a pass=forward"
      " --time-limit 0.01) & sleep 0.2; while [ \"$(wc -l < " +
      out.string() +
      ")\" != 1 ]; do sleep 0.05; done; sleep 0.2; kill -INT $!; kill -INT $!; "
      "wait $!";
  const auto result = run_process({"bash", "-c", script});
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, HasSubstr("interrupted; 1 of 2 cells are in " + out.string() +
                                    ", add --resume to run the rest\n"));
  EXPECT_EQ(keys_of(out).size(), 1U);
}

TEST(Check, AnInterruptSaysHowManyCellsWereChecked) {
  const TempDirectory folder;
  const std::string log = folder / "log";
  const std::string script = "trap '' INT; (trap - INT; exec " + std::string(LONGCA_PROGRAM) +
                             " check --plugin " + FAULT_PLUGIN +
                             " -a kernel=naive,fault_hang -a mask=causal -a tokens=64 -a heads=2:1 "
                             "-a dim=16 -a pass=forward 2> " +
                             log + ") & until grep -q '1/2' " + log +
                             " 2> /dev/null; do sleep 0.05; done; sleep 0.2; kill -INT $!; wait $!";
  const auto result = run_process({"bash", "-c", script});
  EXPECT_EQ(result.exit_code, 130) << read_file(log);
  EXPECT_THAT(result.out, HasSubstr("interrupted: 1 of 2 cells checked, 1 ok\n"));
}

/// No kernel has run, so that none has crashed.
TEST(Bench, AMaskBeyondALimitIsUnsupported) {
  const TempDirectory folder;
  bench(folder / "r.jsonl", {"-a", "mask=block_sparse", "-a", "tokens=1M", "-a", "block=1", "-a",
                             "heads=1", "-a", "dim=1", "-a", "pass=forward"});
  const auto records = read_records(folder / "r.jsonl").records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::unsupported);
  EXPECT_THAT(records[0].status.reason, HasSubstr("the limit is 2147483648"));
}

TEST(Bench, AnInterruptBeforeTheFirstRecordSaysThatTheOldOnesAreThere) {
  const TempDirectory folder;
  const std::string out = folder / "r.jsonl";
  ASSERT_EQ(bench(out, {"-a", "tokens=64", "-a", "pass=forward"}).exit_code, 0);
  const std::string old = read_file(out);
  const std::string script =
      "trap '' INT; (trap - INT; exec " + std::string(LONGCA_PROGRAM) + " bench --out " + out +
      " --plugin " + FAULT_PLUGIN +
      " -a kernel=fault_hang -a mask=causal -a tokens=64 -a heads=2:1 "
      "-a dim=16 -a pass=forward --quiet) & "
      "until ls -l /proc/$!/fd 2> /dev/null | grep -q r.jsonl; do sleep 0.05; "
      "done; sleep 0.2; kill -INT $!; wait $!";
  const auto result = run_process({"bash", "-c", script});
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_THAT(result.err, HasSubstr("interrupted before a cell had ended; " + out +
                                    " holds what it held before\n"));
  EXPECT_EQ(read_file(out), old);
}

TEST(Bench, BadInputIsOneSentenceAndNothingWritten) {
  const TempDirectory folder;
  write_file(folder / "broken.toml", "[axes]\nmask = 'causal\n");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"-a", "tokens=0"}, "tokens 0"},
      {{"-a", "heads=7:3"}, "7:3"},
      {{"-a", "kernel=flahs"}, "unknown kernel 'flahs'"},
      {{"-a", "tokns=5"}, "did you mean 'tokens'"},
      {{"qiuck"}, "did you mean 'quick'"},
      {{(folder / "broken.toml").string()}, "broken.toml:2:"},
      {{"--case-limit", "0"}, "--case-limit 0"},
      {{"--memory-limit", "-1"}, "--memory-limit -1"},
  };
  for (const auto& [arguments, part] : cases) {
    const auto result = bench(folder / "r.jsonl", arguments);
    EXPECT_EQ(result.exit_code, 2) << part;
    EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "r.jsonl"));
  }
}

ProcessResult check(std::vector<std::string> more) {
  std::vector<std::string> arguments{"check"};
  for (const auto& argument : small_axes()) arguments.push_back(argument);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_longca(arguments);
}

TEST(Check, CountsOutcomes) {
  const auto good = check({"-a", "mask=all"});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_EQ(good.out, "28 cells checked, 28 ok\n");
  EXPECT_EQ(check({"-a", "pass=forward"}).out, "1 cell checked, 1 ok\n");
  // What cannot run has not been checked.
  EXPECT_THAT(check({"-a", "kernel=naive,slice", "-a", "pass=forward"}).out,
              HasSubstr("1 of 2 cells checked, 1 ok, 1 un"));
  const auto bad = check(
      {"--plugin", FAULT_PLUGIN, "-a", "kernel=naive,fault_nan,fault_abort", "-a", "pass=forward"});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.out, HasSubstr("fault_nan causal 64 forward: wrong"));
  EXPECT_THAT(bad.out, HasSubstr("fault_abort causal 64 forward: crash"));
  EXPECT_THAT(bad.out, HasSubstr("3 cells checked, 1 ok, 1 wrong, 1 crash\n"));
}

TEST(Check, DumpsBothPassesIntoOneFolder) {
  const TempDirectory folder;
  const auto result = check({"-a", "dtype=bfloat16", "--dump", folder.path().string()});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  const auto cell =
      folder / "naive_causal_tokens-64_heads-2x1_dim-16_dtype-bfloat16_seed-42_device-cpu";
  const std::map<std::string, std::string> shapes{
      {"q", "(64, 2, 16)"},  {"k", "(64, 1, 16)"},  {"v", "(64, 1, 16)"},
      {"do", "(64, 2, 16)"}, {"o", "(64, 2, 16)"},  {"lse", "(2, 64)"},
      {"dq", "(64, 2, 16)"}, {"dk", "(64, 1, 16)"}, {"dv", "(64, 1, 16)"}};
  for (const auto& [name, shape] : shapes) {
    const std::string file = read_file(cell / (name + ".npy"));
    EXPECT_THAT(file.substr(0, 128), HasSubstr(shape)) << name;
  }
  const auto mask = nlohmann::json::parse(read_file(cell / "mask.json"));
  const auto verb = run_longca({"mask", "causal", "--tokens", "64", "--json"});
  EXPECT_EQ(mask, nlohmann::json::parse(verb.out));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Check, AFolderThatCannotBeMadeIsRefused) {
  const auto result = check({"--dump", "/proc/dump"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("cannot make folder /proc/dump"));
}

/// The only cell's file of its dump, for the axes of `check`.
constexpr const char* kDumpedQ =
    "/naive_causal_tokens-64_heads-2x1_dim-16_dtype-float32_seed-42_device-cpu/q.npy";

TEST(Check, AFullDiskUnderItsDumpIsNoVerdict) {
  const TempDirectory folder;
  std::string line = "ulimit -f 4; \"$LONGCA\" check --quiet --dump " + folder.path().string();
  for (const std::string& word : small_axes()) line += " '" + word + "'";
  const auto result =
      run_process({"bash", "-c", line}, {.environment = {{"LONGCA", program_of_tests()}}});
  EXPECT_EQ(result.exit_code, 71) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, ::testing::EndsWith("longca: cannot write " + folder.path().string() +
                                              kDumpedQ + ": File too large\n"));
}

TEST(Check, AWrongPathInItsDumpIsNoVerdict) {
  const TempDirectory folder;
  std::filesystem::create_directories(folder.path().string() + kDumpedQ);
  const auto result = check({"--dump", folder.path().string()});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, ::testing::EndsWith("longca: cannot write " + folder.path().string() +
                                              kDumpedQ + ": Is a directory\n"));
}

}  // namespace
}  // namespace longca::testing
