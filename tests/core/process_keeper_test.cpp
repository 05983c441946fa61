#include "core/process_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/file_descriptor.h"
#include "core/process.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

/// A process that puts a keeper above itself and becomes a shell, as a rank does that mpirun
/// starts.
class KeptShell {
 public:
  explicit KeptShell(const std::string& script) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor write_end(ends[1]);
    keeper_ = ::fork();
    if (keeper_ != 0) return;
    if (!keep_descendants()) ::_exit(100);
    ::dup2(write_end.get(), STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(101);
  }
  ~KeptShell() {
    if (keeper_ > 0) ::kill(keeper_, SIGKILL);
    if (keeper_ > 0) wait_for_process(keeper_);
  }
  KeptShell(const KeptShell&) = delete;
  KeptShell& operator=(const KeptShell&) = delete;

  /// Waits until it prints one.
  pid_t printed_number() const {
    std::array<char, 32> text{};
    return ::read(output_.get(), text.data(), text.size() - 1) > 0 ? std::atoi(text.data()) : 0;
  }
  void signal(int number) const { ::kill(keeper_, number); }
  int wait() {
    const int status = wait_for_process(keeper_);
    keeper_ = -1;
    return status;
  }

 private:
  pid_t keeper_ = -1;
  FileDescriptor output_;
};

bool is_there(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// Whether it ends while nobody does anything about it.
bool ends(pid_t pid) {
  for (int i = 0; i < 500 && is_there(pid); ++i) std::this_thread::sleep_for(10ms);
  return !is_there(pid);
}

/// Prints the id of a descendant in a session of its own, then does what follows. The descendant
/// holds no output of the test's own, for whose end others wait.
std::string with_runaway(const std::string& then) {
  return "(setsid sh -c 'echo $$; exec sleep 1000 2>&1' &); " + then;
}

TEST(KeepDescendants, EndsAsTheForkDoes) {
  const int code = KeptShell("exit 7").wait();
  ASSERT_TRUE(WIFEXITED(code));
  EXPECT_EQ(WEXITSTATUS(code), 7);
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM}) {
    const int status = KeptShell("kill -" + std::to_string(signal) + " $$").wait();
    ASSERT_TRUE(WIFSIGNALED(status)) << signal;
    EXPECT_EQ(WTERMSIG(status), signal);
  }
}

TEST(KeepDescendants, PassesSignalsOn) {
  KeptShell shell("trap 'exit 5' USR1; echo 1; while :; do sleep 0.01; done");
  ASSERT_EQ(shell.printed_number(), 1);
  shell.signal(SIGUSR1);
  EXPECT_EQ(WEXITSTATUS(shell.wait()), 5);
}

TEST(KeepDescendants, LeavesNoneWhenTheForkEnds) {
  KeptShell shell(
      "id=$(setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' &)\necho $id; exit 4");
  const pid_t runaway = shell.printed_number();
  ASSERT_GT(runaway, 0);
  EXPECT_EQ(WEXITSTATUS(shell.wait()), 4);
  EXPECT_FALSE(is_there(runaway));
}

/// A launcher sends SIGTERM before it kills.
TEST(KeepDescendants, LeavesNoneAfterSigtermThoughTheForkIgnoresIt) {
  for (const std::string trap : {"", "trap '' TERM; "}) {
    KeptShell shell(trap + with_runaway("while :; do sleep 1; done"));
    const pid_t runaway = shell.printed_number();
    ASSERT_GT(runaway, 0);
    shell.signal(SIGTERM);
    const int status = shell.wait();
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(is_there(runaway));
  }
}

TEST(KeepDescendants, LeavesNoneWhenTheLauncherDies) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const FileDescriptor read_end(pipe[0]);
  const FileDescriptor write_end(pipe[1]);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const KeptShell shell(with_runaway("exec sleep 1000"));
    const pid_t runaway = shell.printed_number();
    if (::write(write_end.get(), &runaway, sizeof runaway) != sizeof runaway) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t runaway = 0;
  ASSERT_EQ(::read(read_end.get(), &runaway, sizeof runaway), sizeof runaway);
  wait_for_process(launcher);
  ASSERT_GT(runaway, 0);
  EXPECT_TRUE(ends(runaway));
}

}  // namespace
}  // namespace longca
