// Kernels that leave something behind or speak in the worker's name: each costs its cell, and no
// other kernel is slower, wrong or lost for it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "bench/bench_run.h"
#include "bench/running.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Runs of kernels of a plug-in whose path is on the command line of this test's processes alone.
class Strays : public ::testing::Test {
 protected:
  Strays() : plugin_((folder_ / "strays.so").string()) { fs::copy_file(FAULT_PLUGIN, plugin_); }

  /// The records of `kernels`, forward passes, `naive` before and after.
  std::vector<Record> run(const std::string& kernels, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{
        "--plugin", plugin_, "-a", "pass=forward", "-a", "kernel=naive," + kernels + ",flash"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    result_ = bench(folder_ / "strays.jsonl", arguments);
    EXPECT_EQ(result_.exit_code, 0) << result_.err;
    EXPECT_TRUE(all_end(plugin_)) << "a process outlived its run";
    auto records = read_records(folder_ / "strays.jsonl").records;
    for (const char* honest : {"naive", "flash"}) expect(records, honest, StatusCode::ok, "");
    return records;
  }

  static void expect(const std::vector<Record>& records, const std::string& kernel, StatusCode code,
                     const std::string& part) {
    const Record record = find_record(records, kernel, Pass::forward);
    EXPECT_EQ(to_string(record.status.code), to_string(code))
        << kernel << ": " << record.status.reason;
    EXPECT_THAT(record.status.reason, HasSubstr(part)) << kernel;
    EXPECT_EQ(record.metrics.contains("time_ms"), code == StatusCode::ok) << kernel;
  }

  TempDirectory folder_;
  std::string plugin_;
  ProcessResult result_;
};

TEST_F(Strays, ForgedMessagesAreNone) {
  const auto records = run("stray_stage,stray_record,stray_bytes", {"--case-limit", "20"});
  expect(records, "stray_stage", StatusCode::crash,
         "in forward the process sent what is no message");
  expect(records, "stray_record", StatusCode::crash,
         "in forward the process sent what is no message");
  expect(records, "stray_bytes", StatusCode::crash,
         "in forward the process sent a message of more than 67108864 bytes");
}

TEST_F(Strays, PrintingWithoutEndIsOutOfMemory) {
  const auto records = run("stray_output", {"--case-limit", "60"});
  expect(records, "stray_output", StatusCode::oom,
         "in forward the process printed more than the 256 MiB that are kept");
}

TEST_F(Strays, MemoryThatStaysAllocatedIsNoted) {
  const auto records = run("stray_memory");
  expect(records, "stray_memory", StatusCode::ok, "");
  EXPECT_THAT(find_record(records, "stray_memory", Pass::forward).notes.at("memory left"),
              HasSubstr("96 MiB were still allocated after the plan had ended"));
  EXPECT_FALSE(find_record(records, "naive", Pass::forward).notes.contains("memory left"));
}

TEST_F(Strays, ProcessesOfOtherSessionsEndWithTheWorker) {
  expect(run("stray_session"), "stray_session", StatusCode::ok, "");
}

TEST_F(Strays, TheEndOfAWorkerIsSeenThoughItsChildHoldsTheSocket) {
  const auto records = run("stray_child", {"--case-limit", "60"});
  expect(records, "stray_child", StatusCode::crash,
         "in forward the process ended itself with exit code 9");
}

TEST_F(Strays, ChangedThreadsAreSeenAndSetBack) {
  const auto records = run("stray_rounding,stray_traps");
  expect(records, "stray_rounding", StatusCode::wrong, "forward left the rounding mode upward");
  expect(records, "stray_traps", StatusCode::wrong,
         "forward left floating-point exceptions that end the process");
}

TEST_F(Strays, ABoundThreadIsSeen) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one CPU cannot be left";
  expect(run("stray_binding"), "stray_binding", StatusCode::wrong,
         "forward left a thread bound to 1 of ");
}

TEST_F(Strays, ABusyThreadIsSeenAndDiesWithItsWorker) {
  expect(run("stray_thread"), "stray_thread", StatusCode::wrong,
         "left a thread behind that goes on working while no call runs");
}

TEST_F(Strays, ThreadsThatFallAsleepAreNone) {
  expect(run("own_threads,fault_none"), "own_threads", StatusCode::ok, "");
}

}  // namespace
}  // namespace longca::testing
