#include "core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace longca {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

/// Waits until it prints something, a number.
pid_t printed_number(ChildProcess& process) {
  for (int i = 0; i < 1000 && process.printed_bytes() == 0; ++i) std::this_thread::sleep_for(10ms);
  return std::atoi(process.take_output().c_str());
}

bool is_there(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// Whether it ends while nobody does anything about it.
bool ends(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    if (!is_there(pid)) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

bool wait_for_end(const ChildProcess& process) {
  pollfd end{process.end_descriptor(), POLLIN, 0};
  return ::poll(&end, 1, 10000) > 0;
}

/// A process in a session of its own, whose id is printed, and what its parent does then.
std::vector<std::string> with_runaway(const std::string& then) {
  return shell("setsid sh -c 'echo $$; exec sleep 1000' & " + then);
}

TEST(ChildProcess, TellsHowItEnded) {
  ChildProcess exits(shell("echo a; echo b >&2; exit 3"));
  ASSERT_TRUE(wait_for_end(exits));
  EXPECT_TRUE(exits.has_ended());
  EXPECT_EQ(exits.take_output(), "a\nb\n");
  const int status = exits.kill();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  ChildProcess crashes(shell("kill -SEGV $$"));
  ASSERT_TRUE(wait_for_end(crashes));
  EXPECT_EQ(WTERMSIG(crashes.kill()), SIGSEGV);
  ChildProcess sleeps(shell("exec sleep 1000"));
  EXPECT_FALSE(sleeps.has_ended());
  EXPECT_EQ(WTERMSIG(sleeps.kill()), SIGKILL);
  ChildProcess asked(shell("trap 'exit 5' TERM; echo 1; while :; do sleep 0.01; done"));
  printed_number(asked);
  EXPECT_EQ(WEXITSTATUS(asked.terminate(10s)), 5);
}

TEST(ChildProcess, NoProgramIsExitCode127) {
  ChildProcess process({"/no/such/program"});
  ASSERT_TRUE(wait_for_end(process));
  EXPECT_EQ(WEXITSTATUS(process.kill()), 127);
}

/// A process that prints the id of a descendant in a session of its own, and how it ends.
struct Departure {
  const char* name;
  std::vector<std::string> command;
  std::optional<int> exit_code;  ///< of one that ends by itself; else it is killed
};

class LeavesNoDescendant : public ::testing::TestWithParam<Departure> {};

TEST_P(LeavesNoDescendant, OutsideOfItsGroup) {
  const Departure& departure = GetParam();
  ChildProcess process(departure.command);
  const pid_t runaway = printed_number(process);
  ASSERT_GT(runaway, 0);
  if (departure.exit_code) {
    ASSERT_TRUE(wait_for_end(process));
    EXPECT_FALSE(is_there(runaway));
    EXPECT_EQ(WEXITSTATUS(process.kill()), *departure.exit_code);
  } else {
    ASSERT_TRUE(is_there(runaway));
    EXPECT_EQ(WTERMSIG(process.kill()), SIGKILL);
    EXPECT_FALSE(is_there(runaway));
  }
}

INSTANTIATE_TEST_SUITE_P(
    ChildProcess, LeavesNoDescendant,
    ::testing::Values(Departure{"WhenItIsKilled", with_runaway("sleep 1000"), std::nullopt},
                      Departure{"WhenItEndsByItself",  // and not before the other is there
                                shell("id=$(setsid sh -c 'echo $$; exec sleep 1000 >&2' &)\n"
                                      "echo $id; exit 4"),
                                4},
                      Departure{
                          "ThoughTheParentIsGone",  // the double fork of daemons
                          shell("(setsid sh -c 'echo $$; exec sleep 1000' &); exec sleep 1000"),
                          std::nullopt}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(ChildProcess, AndItsDescendantsDieWithThisProcess) {
  std::array<int, 2> ends_of_pipe{};
  ASSERT_EQ(::pipe(ends_of_pipe.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ChildProcess process(with_runaway("sleep 1000"));
    const std::array<pid_t, 2> pids{process.pid(), printed_number(process)};
    if (::write(ends_of_pipe[1], pids.data(), sizeof pids) != sizeof pids) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  std::array<pid_t, 2> pids{};
  ASSERT_EQ(::read(ends_of_pipe[0], pids.data(), sizeof pids), sizeof pids);
  wait_for_process(parent);
  for (const pid_t pid : pids) {
    ASSERT_GT(pid, 0);
    EXPECT_TRUE(ends(pid));
  }
  ::close(ends_of_pipe[0]);
  ::close(ends_of_pipe[1]);
}

TEST(ChildProcess, InheritsTheDescriptorsThatAreNamedAndNoOther) {
  const FileDescriptor leaks(::open("/dev/null", O_RDONLY));
  const FileDescriptor named(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto script = shell(
      fmt::format("for f in {} {}; do if [ -e /proc/self/fd/$f ]; then echo $f is open; fi; done",
                  leaks.get(), named.get()));
  ChildProcess::Options options;
  options.inherited = {named.get()};
  ChildProcess process(script, options);
  ASSERT_TRUE(wait_for_end(process));
  EXPECT_EQ(process.take_output(), fmt::format("{} is open\n", named.get()));
}

TEST(ChildProcess, CountsWhatItPrints) {
  ChildProcess process(shell("head -c 1000000 /dev/zero"));
  ASSERT_TRUE(wait_for_end(process));
  EXPECT_EQ(process.printed_bytes(), 1000000);
  EXPECT_EQ(process.take_output().size(), 65536U);
  EXPECT_EQ(process.printed_bytes(), 0);
}

TEST(ChildProcess, GetsVariablesOverThoseOfThisProcess) {
  ::setenv("LONGCA_TEST_VARIABLE", "old", 1);
  ChildProcess::Options options;
  options.environment = {{"LONGCA_TEST_VARIABLE", "new"}};
  ChildProcess process(shell("echo $LONGCA_TEST_VARIABLE"), options);
  ASSERT_TRUE(wait_for_end(process));
  EXPECT_EQ(process.take_output(), "new\n");
}

TEST(ProcText, IsEmptyWhereNothingCanBeRead) {
  EXPECT_EQ(proc_text("/proc/self/comm").substr(0, 5), "core_");
  EXPECT_EQ(proc_text("/proc/0/stat"), "") << "no such process";
  EXPECT_EQ(proc_text("/proc/self/mem"), "") << "it opens, and then the read fails";
}

}  // namespace
}  // namespace longca
