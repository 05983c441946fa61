// Ranks that fail in every way known: each costs its cell, is named, and leaves no process behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/record/record.h"
#include "bench/running.h"
#include "core/process.h"
#include "support/process.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

/// A run over three ranks, with a plug-in whose path is on the command line of every rank of this
/// test and of no other process, and a folder for temporary files that must be empty in the end.
class Launch : public ::testing::Test {
 protected:
  Launch() : plugin_((folder_ / "rank_faults.so").string()), scratch_(folder_ / "scratch") {
    fs::copy_file(RANK_FAULT_PLUGIN, plugin_);
    fs::create_directory(scratch_);
  }

  Arguments cp(const fs::path& out, const Arguments& more) const {
    Arguments arguments{"cp",    "cp_quick",        "--plugin",     plugin_,
                        "--out", out.string(),      "--time-limit", "0.01",
                        "-a",    "mask=causal",     "-a",           "tokens=96",
                        "-a",    "heads=6:3",       "-a",           "dim=16",
                        "-a",    "scheme=ring_p2p", "-a",           "shard=contiguous",
                        "-a",    "ranks=3",         "-a",           "pass=forward"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  ProcessOptions options() const {
    return {.environment = {{"TMPDIR", scratch_.string()},
                            {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                            {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                            {"OMPI_MCA_rmaps_base_oversubscribe", "1"}}};
  }

  ProcessResult run(const fs::path& out, const Arguments& more) const {
    return run_longca(cp(out, more), options());
  }

  void expect_nothing_left() const {
    EXPECT_TRUE(all_end(plugin_)) << "a rank outlived its run";
    EXPECT_TRUE(fs::is_empty(scratch_)) << fs::directory_iterator(scratch_)->path();
  }

  TempDirectory folder_;
  std::string plugin_;
  fs::path scratch_;
};

Status status_of(const std::vector<Record>& records, const std::string& kernel) {
  const auto found =
      std::ranges::find_if(records, [&](const Record& r) { return r.c.kernel == kernel; });
  if (found == records.end()) {
    ADD_FAILURE() << "no record of " << kernel;
    return {};
  }
  return found->status;
}

TEST_F(Launch, AFaultOfARankCostsItsCellAndNamesTheRank) {
  const auto out = folder_ / "faults.jsonl";
  const auto result = run(out, {"-a",
                                "kernel=rank_killed,naive,rank_exits,rank_throws,rank_sleeps,rank_"
                                "stops,rank_computes,rank_none",
                                "--case-limit", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 8U);
  const auto expect = [&](const std::string& kernel, StatusCode code, const auto& reason) {
    const Status status = status_of(records, kernel);
    EXPECT_EQ(to_string(status.code), to_string(code)) << kernel << ": " << status.reason;
    EXPECT_THAT(status.reason, reason) << kernel;
  };
  expect("rank_killed", StatusCode::crash,
         AllOf(HasSubstr("in forward rank 1 "), HasSubstr("signal 9 (Killed)")));
  expect("rank_exits", StatusCode::crash,
         AllOf(HasSubstr("in forward rank 1 "), HasSubstr("exit code 5")));
  expect("rank_throws", StatusCode::crash,
         AllOf(HasSubstr("rank 1"), HasSubstr("this kernel throws on one rank")));
  const auto late = AllOf(StartsWith("rank 1: forward had not ended"), HasSubstr("8 s were up"));
  expect("rank_sleeps", StatusCode::timeout, late);
  expect("rank_stops", StatusCode::timeout, late);
  expect("rank_computes", StatusCode::timeout, late);
  expect("naive", StatusCode::ok, "");
  expect("rank_none", StatusCode::ok, "");
  expect_nothing_left();
}

/// What a rank's kernel writes to the parent's socket is none of the rank's messages.
TEST_F(Launch, AForgedRecordCostsItsCell) {
  const auto out = folder_ / "forged.jsonl";
  const auto result = run(out, {"-a", "kernel=naive,rank_forges,rank_none"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 3U);
  const Status status = status_of(records, "rank_forges");
  EXPECT_EQ(status.code, StatusCode::crash);
  EXPECT_EQ(status.reason, "in forward rank 1 sent what is no message");
  EXPECT_TRUE(status_of(records, "naive").ok());
  EXPECT_TRUE(status_of(records, "rank_none").ok());
  expect_nothing_left();
}

/// Without the reference, whose estimate takes time per token: 20000 · (6 + 3) rows of 32 float32
/// values, their gradients and an lse are 44 MiB.
TEST_F(Launch, AProblemThatIsTooLargeIsOutOfMemoryByItsTensorsAlone) {
  const auto out = folder_ / "large.jsonl";
  const auto result = run(out, {"-a", "kernel=naive", "-a", "tokens=20000", "-a", "dtype=float32",
                                "--memory-limit", "8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Status status = status_of(read_records(out).records, "naive");
  EXPECT_EQ(status.code, StatusCode::oom);
  EXPECT_THAT(status.reason, HasSubstr(" and, to verify, the whole problem of 44 MiB pass the "
                                       "memory limit of 8 MiB"));
}

TEST_F(Launch, WhatARanksKernelLeavesBehindIsSeenAndEndsWithTheRanks) {
  const auto out = folder_ / "left.jsonl";
  const auto result =
      run(out, {"-a", "kernel=rank_leaves_thread,rank_past_lse,rank_leaves_child,rank_none"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 4U);
  const auto expect = [&](const std::string& kernel, StatusCode code, const std::string& reason) {
    const Status status = status_of(records, kernel);
    EXPECT_EQ(to_string(status.code), to_string(code)) << kernel << ": " << status.reason;
    EXPECT_THAT(status.reason, HasSubstr(reason)) << kernel;
  };
  expect("rank_leaves_thread", StatusCode::wrong,
         "rank 1: clean-up left a thread behind that goes on working while no call runs");
  expect("rank_past_lse", StatusCode::wrong,
         "rank 1: the kernel, or a message, wrote outside of the outputs: 64 bytes behind lse");
  expect("rank_leaves_child", StatusCode::ok, "");
  expect("rank_none", StatusCode::ok, "");
  expect_nothing_left();
}

/// Ranks that another mpirun has started are no descendants of the program.
TEST_F(Launch, WhatARankOfAnotherLauncherLeavesBehindEndsWithIt) {
  const auto out = folder_ / "found.jsonl";
  Arguments command{"mpirun", "-n", "3", program_of_tests()};
  const Arguments of_ranks = cp(out, {"-a", "kernel=rank_leaves_child", "--launcher", "none"});
  command.insert(command.end(), of_ranks.begin(), of_ranks.end());
  const auto result = run_process(command, options());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
  EXPECT_TRUE(all_end(plugin_)) << "a rank's child outlived the run";
}

/// Where the budget takes a few tiles of keys only, their gradients are computed from the o and lse
/// of all ranks: after the timed repetitions, too.
TEST_F(Launch, GradientsOfOtherBitsAreVerifiedAgainByDrawnTiles) {
  const auto suite = folder_ / "drawn.toml";
  write_file(suite,
             "description = \"Too little time for more than a few tiles\"\n"
             "[axes]\ndtype = \"bfloat16\"\ndevice = \"cpu\"\nmode = \"burst\"\n"
             "[run]\ntime_limit_s = 0.01\nverify_budget_s = 1e-6\n");
  const auto out = folder_ / "drawn.jsonl";
  Arguments arguments = cp(out, {"-a", "kernel=rank_wavers", "-a", "tokens=400"});
  arguments[1] = suite.string();
  for (std::string& argument : arguments) {
    if (argument == "pass=forward") argument = "pass=backward";
  }
  auto with_dirty_memory = options();
  with_dirty_memory.environment["MALLOC_PERTURB_"] = "90";
  const auto result = run_longca(arguments, with_dirty_memory);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
  EXPECT_LT(records[0].metrics.at("verified_fraction"), 0.5);
}

TEST_F(Launch, ARankThatEndsAtTheStartIsNamedAndTheNextCellRuns) {
  const auto once = folder_ / "once";
  write_file(once, "");
  auto with_fault = options();
  with_fault.environment["LONGCA_TEST_FAIL_ONCE"] = once.string();
  const auto out = folder_ / "start.jsonl";
  const auto result = run_longca(cp(out, {"-a", "kernel=rank_none,naive"}), with_fault);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].status.code, StatusCode::crash);
  EXPECT_THAT(records[0].status.reason,
              AllOf(HasSubstr("could not start: rank 1 "), HasSubstr("exit code 7")));
  EXPECT_TRUE(records[1].status.ok()) << records[1].status.reason;
  expect_nothing_left();
}

/// Events of every rank and lane: those of a lane one after the other, each with its bytes or
/// cells.
TEST_F(Launch, TracesARepetitionOfOneCell) {
  const auto file = folder_ / "trace.json";
  const auto result = run(folder_ / "out.jsonl", {"-a", "kernel=naive", "--trace", file.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto trace = nlohmann::json::parse(read_file(file));
  EXPECT_THAT(trace.at("otherData").at("case").get<std::string>(), HasSubstr("scheme=ring_p2p"));
  std::map<std::pair<int, int>, double> ends;
  double cells = 0;
  double sent = 0;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::pair place(event.at("pid").get<int>(), event.at("tid").get<int>());
    const double begin = event.at("ts").get<double>();
    const double length = event.at("dur").get<double>();
    EXPECT_GE(length, 0) << event;
    // Exchanges may be on their way together.
    if (place.second == 0) {
      EXPECT_GE(begin, ends[place]) << event;
    }
    ends[place] = begin + length;
    cells += event.at("args").value("cells", 0.0);
    sent += event.at("args").value("bytes_sent", 0.0);
  }
  EXPECT_EQ(ends.size(), 6U) << "three ranks of two lanes";
  EXPECT_EQ(cells, 6 * 96 * 97 / 2);
  const Record record = read_records(folder_ / "out.jsonl").records.at(0);
  EXPECT_EQ(sent, 3 * record.metrics.at("bytes_sent"));
}

/// The cell was measured; only its trace is missing.
TEST_F(Launch, KeepsTheRecordOfACellWhoseTraceCannotBeWritten) {
  const auto out = folder_ / "out.jsonl";
  const auto result = run(out, {"-a", "kernel=naive", "--trace", "/dev/full"});
  EXPECT_EQ(result.exit_code, 71) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot write /dev/full: No space left on device"));
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
  EXPECT_TRUE(records[0].metrics.contains("time_ms"));
  expect_nothing_left();
}

/// What it writes past its outputs is found after it was traced.
TEST_F(Launch, WritesNoTraceOfACellThatIsWrong) {
  const auto file = folder_ / "trace.json";
  const auto out = folder_ / "out.jsonl";
  run(out, {"-a", "kernel=rank_past_lse", "--trace", file.string()});
  EXPECT_EQ(read_records(out).records.at(0).status.code, StatusCode::wrong);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(Launch, TracesNothingButOneCell) {
  const auto file = folder_ / "trace.json";
  auto result = run(folder_ / "out.jsonl",
                    {"-a", "kernel=naive", "-a", "pass=all", "--trace", file.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--trace: one cell is traced, and there are 3"));
  EXPECT_FALSE(fs::exists(file));
  result = run(folder_ / "out.jsonl",
               {"-a", "kernel=naive", "-a", "pass=step", "--trace", file.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--trace: one pass is traced, not a step"));
  result = run(folder_ / "out.jsonl",
               {"-a", "kernel=naive", "--trace", (folder_ / "no/such/trace.json").string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no/such/trace.json: No such file"));
}

TEST_F(Launch, WithoutMpirunEveryCellSaysWhatToInstall) {
  auto without = options();
  without.environment["LONGCA_MPIRUN"] = "no-such-mpirun";
  const auto out = folder_ / "none.jsonl";
  const auto result = run_longca(cp(out, {"-a", "kernel=naive"}), without);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::unavailable);
  EXPECT_THAT(records[0].status.reason, HasSubstr("no-such-mpirun"));
  auto nowhere = options();
  nowhere.environment["PATH"] = "/nowhere";
  run_longca(cp(out, {"-a", "kernel=naive"}), nowhere);
  EXPECT_THAT(read_records(out).records.at(0).status.reason, HasSubstr("openmpi-bin"));
}

/// As mpirun of another MPI does: each process believes to be all there are.
TEST_F(Launch, ALauncherOfOtherRanksIsNamedAsSuch) {
  const auto launcher = folder_ / "launcher";
  write_file(
      launcher,
      "#!/bin/bash\nwhile [[ $1 != */longca-rank ]]; do shift; done\n\"$@\" & \"$@\" & wait\n");
  fs::permissions(launcher, fs::perms::owner_all);
  auto other = options();
  other.environment["LONGCA_MPIRUN"] = launcher.string();
  const auto out = folder_ / "other.jsonl";
  const auto result = run_longca(cp(out, {"-a", "kernel=naive"}), other);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status.code, StatusCode::crash);
  EXPECT_THAT(
      records[0].status.reason,
      HasSubstr("the launcher started processes of 1 rank each, not of 3: is it of the MPI"));
}

TEST_F(Launch, WithoutSrunEveryCellSaysSo) {
  auto nowhere = options();
  nowhere.environment["PATH"] = "/nowhere";
  const auto out = folder_ / "none.jsonl";
  run_longca(cp(out, {"-a", "kernel=naive", "--launcher", "srun"}), nowhere);
  const Record record = read_records(out).records.at(0);
  EXPECT_EQ(record.status.code, StatusCode::unavailable);
  EXPECT_THAT(record.status.reason, HasSubstr("there is no srun on the PATH"));
}

/// Starts a run that goes on for long, and waits for its first record.
class LongRun {
 public:
  LongRun(Arguments arguments, const fs::path& out, const ProcessOptions& options) {
    arguments.insert(arguments.begin(), LONGCA_PROGRAM);
    std::vector<char*> pointers;
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      for (const auto& [name, value] : options.environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
      }
      if (std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    for (int i = 0; i < 1500 && (!fs::exists(out) || fs::file_size(out) == 0); ++i) {
      std::this_thread::sleep_for(20ms);
    }
  }

  /// Sends it a signal; waitpid's status.
  int end(int signal) const {
    ::kill(pid_, signal);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return status;
  }

 private:
  pid_t pid_ = -1;
};

const Arguments kMany = {"-a", "kernel=rank_none", "-a", "seed=1:1K:x2",
                         "-a", "mask=all",         "-a", "shard=all"};

TEST_F(Launch, AnInterruptEndsAllRanks) {
  const auto out = folder_ / "interrupted.jsonl";
  const LongRun long_run(cp(out, kMany), out, options());
  ASSERT_TRUE(is_running(plugin_));
  const int status = long_run.end(SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  expect_nothing_left();
  for (const Record& record : read_records(out).records) EXPECT_TRUE(record.status.ok());
}

TEST_F(Launch, NoRankOutlivesAProgramThatIsKilled) {
  const auto out = folder_ / "killed.jsonl";
  const LongRun long_run(cp(out, kMany), out, options());
  ASSERT_TRUE(is_running(plugin_));
  EXPECT_TRUE(WIFSIGNALED(long_run.end(SIGKILL)));
  EXPECT_TRUE(all_end(plugin_)) << "a rank outlived its run";
  // What it wrote goes on.
  const auto done = read_records(out).records.size();
  const auto resumed = run(out, {"-a", "kernel=naive", "--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_GE(read_records(out).records.size(), done);
}

/// A process's environment or command line: texts with a zero byte behind each.
std::string read_process_file(const fs::path& process, const char* name) {
  return proc_text(process / name);
}

/// The secret of the ranks that run now, from a rank's environment as the system keeps it.
std::string secret_of_ranks(const std::string& plugin) {
  constexpr std::string_view kName = "LONGCA_SECRET=";
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (read_process_file(entry.path(), "cmdline").find(plugin) == std::string::npos) continue;
    const std::string environment = read_process_file(entry.path(), "environ");
    const std::size_t begin = environment.find(kName);
    if (begin != std::string::npos) return environment.c_str() + begin + kName.size();
  }
  return {};
}

TEST_F(Launch, NoCommandLineShowsTheSecretAndNobodyListensForStrangers) {
  const auto out = folder_ / "secret.jsonl";
  const LongRun long_run(cp(out, kMany), out, options());
  const std::string secret = secret_of_ranks(plugin_);
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_FALSE(is_running(secret));
  for (const auto& entry : fs::recursive_directory_iterator(scratch_)) {
    EXPECT_NE(entry.path().filename().string().substr(0, 5), "ranks") << "a socket of the server";
  }
  long_run.end(SIGINT);
  expect_nothing_left();
}

ProcessResult mpirun(const std::vector<Arguments>& programs, const ProcessOptions& options) {
  Arguments command{"mpirun"};
  for (const Arguments& program : programs) {
    if (&program != &programs.front()) command.emplace_back(":");
    command.insert(command.end(), program.begin(), program.end());
  }
  return run_process(command, options);
}

Arguments times(int n, Arguments arguments) {
  arguments.insert(arguments.begin(), {"-n", std::to_string(n), LONGCA_PROGRAM});
  return arguments;
}

TEST_F(Launch, RunsInsideALaunchThatItFinds) {
  const auto out = folder_ / "inside.jsonl";
  const auto result =
      mpirun({times(3, cp(out, {"-a", "kernel=naive", "-a", "ranks=2,3"}))}, options());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto records = read_records(out).records;
  ASSERT_EQ(records.size(), 2U);
  for (const Record& record : records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_EQ(record.rank_times_ms.size(), static_cast<std::size_t>(*record.c.ranks));
  }
  EXPECT_THAT(result.out, HasSubstr("2 cells: 2 ok"));
  expect_nothing_left();
}

TEST_F(Launch, BadInputInsideALaunchIsOneSentence) {
  const auto result = mpirun({times(3, cp(folder_ / "bad.jsonl", {"-a", "ranks=4"}))}, options());
  EXPECT_NE(result.exit_code, 0);
  const std::string sentence = "longca: 4 ranks need a place each, and this launch has 3 processes";
  EXPECT_THAT(result.err, HasSubstr(sentence));
  EXPECT_EQ(result.err.find("longca: "), result.err.rfind("longca: ")) << result.err;
}

/// mpirun ends all processes as soon as one has failed: the first must have spoken by then.
TEST_F(Launch, BadInputIsToldThoughTheFirstProcessComesLate) {
  const Arguments arguments = cp(folder_ / "bad.jsonl", {"-a", "ranks=4"});
  Arguments late{"-n", "1", "sh", "-c", "sleep 2; exec \"$0\" \"$@\"", LONGCA_PROGRAM};
  late.insert(late.end(), arguments.begin(), arguments.end());
  const auto result = mpirun({late, times(2, arguments)}, options());
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: 4 ranks need a place each"));
}

TEST_F(Launch, DifferentSuitesAreRefused) {
  const auto out = folder_ / "differ.jsonl";
  const auto one = times(1, cp(out, {"-a", "kernel=naive", "-a", "ranks=2"}));
  const auto other = times(1, cp(out, {"-a", "kernel=rank_none", "-a", "ranks=2"}));
  const auto result = mpirun({one, other}, options());
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("longca: rank 1 was given another suite than rank 0"));
  expect_nothing_left();
}

TEST_F(Launch, RanksReadTheUsersOwnFiles) {
  write_file(folder_ / "d.txt", "20 60 16");
  write_file(folder_ / "m.json", R"({"tokens":96,"slices":[[0,96,0,40,"full"]]})");
  const std::pair<Arguments, double> runs[] = {
      {{"-a", "mask=document", "-a", "lengths=" + (folder_ / "d.txt").string()},
       20 * 20 + 60 * 60 + 16 * 16},
      {{"-a", "mask=" + (folder_ / "m.json").string()}, 96 * 40}};
  for (const auto& [arguments, area] : runs) {
    Arguments more = arguments;
    more.insert(more.end(), {"-a", "kernel=naive"});
    const auto result = run(folder_ / "r.jsonl", more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto records = read_records(folder_ / "r.jsonl").records;
    ASSERT_EQ(records.size(), 1U);
    EXPECT_TRUE(records[0].status.ok()) << records[0].status.reason;
    EXPECT_EQ(records[0].metrics.at("area"), area);
  }
  expect_nothing_left();
}

}  // namespace
}  // namespace longca::testing
