// A run that is killed at any moment loses no finished record and leaves no process behind.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "bench/bench_run.h"
#include "bench/running.h"
#include "support/temp_directory.h"

namespace longca::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kKills = 100;  // tests/faults kills as often as it is told
constexpr std::size_t kCells = 24;

std::vector<std::string> command(const fs::path& out, const std::string& plugin) {
  std::vector<std::string> arguments{LONGCA_PROGRAM, "bench",   "--out",    out.string(),
                                     "--resume",     "--quiet", "--plugin", plugin};
  for (const auto& argument : small_axes()) arguments.push_back(argument);
  arguments.insert(arguments.end(),
                   {"--time-limit", "0.01", "-a", "kernel=naive,rowwise", "-a",
                    "mask=full,causal,sliding_window,document,prefix_lm_causal,block_sparse"});
  return arguments;
}

pid_t start(std::vector<std::string> arguments) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
  ::execv(pointers[0], pointers.data());
  ::_exit(127);
}

std::set<std::string> keys_of(const fs::path& file) {
  std::set<std::string> keys;
  if (!fs::exists(file)) return keys;
  for (const Record& record : read_records(file).records) {
    EXPECT_TRUE(record.status.ok()) << record.status.reason;
    EXPECT_TRUE(keys.insert(record.c.key()).second) << "twice: " << record.c.key();
  }
  return keys;
}

TEST(Kill, AtAnyMomentLosesNoFinishedRecord) {
  const TempDirectory folder;
  // A name of its own on every command line of this test's processes.
  const std::string plugin = (folder / "rowwise.so").string();
  fs::copy_file(EXAMPLE_PLUGIN, plugin);
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  ASSERT_EQ(::waitpid(start(command(folder / "whole.jsonl", plugin)), &status, 0) > 0, true);
  ASSERT_EQ(status, 0);
  const auto whole_run = std::chrono::steady_clock::now() - begin;
  const auto expected = keys_of(folder / "whole.jsonl");
  ASSERT_EQ(expected.size(), kCells);

  std::mt19937 random(42);
  const auto longest = std::chrono::duration_cast<std::chrono::microseconds>(whole_run) / 3;
  std::uniform_int_distribution<std::int64_t> moment(0, longest.count());
  const auto file = folder / "killed.jsonl";
  std::set<std::string> before;
  int completed = 0;
  for (int i = 0; i < kKills; ++i) {
    const pid_t pid = start(command(file, plugin));
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    ::kill(pid, SIGKILL);
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    const auto now = keys_of(file);
    EXPECT_TRUE(std::ranges::includes(now, before)) << "kill " << i << " lost a record";
    EXPECT_TRUE(std::ranges::includes(expected, now));
    before = now;
    if (now == expected) {  // from the beginning
      ++completed;
      fs::remove(file);
      before.clear();
    }
  }
  EXPECT_GT(completed, 0);
  ASSERT_EQ(::waitpid(start(command(file, plugin)), &status, 0) > 0, true);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(keys_of(file), expected);
  EXPECT_TRUE(all_end(plugin)) << "a worker outlived its run";
}

}  // namespace
}  // namespace longca::testing
