#include "core/process_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace longca {
namespace {

constexpr int kNoProgram = 127;                 // the shell's exit code
constexpr std::int64_t kGraceMs = 5000;         // for a program whose parent has died to end
constexpr std::int64_t kGraceOfForkMs = 500;    // for a fork that got SIGTERM
constexpr timespec kStepOfKill{0, 50'000'000};  // between two rounds of killing
constexpr int kMaxRounds = 200;                 // for descendants that a device blocks

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

/// Marks descriptors first … last to be closed (flags 0: closes them).
void close_descriptors(unsigned first, unsigned last, unsigned flags) {
  if (first > last || ::syscall(SYS_close_range, first, last, flags) == 0) return;
  // Linux before 5.11.
  const long most = std::min<long>(::sysconf(_SC_OPEN_MAX), 65536);
  for (long one = first; one <= std::min<long>(last, most); ++one) {
    const int descriptor = static_cast<int>(one);
    flags == 0 ? ::close(descriptor) : ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  }
}

/// Becomes the program.
[[noreturn]] void become(const KeptProgram& program, pid_t keeper, const sigset_t& mask) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, program.death_signal);
  if (::getppid() != keeper) ::_exit(kNoProgram);  // it died before the line above
  if (!program.inherits_all) close_descriptors(3, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int descriptor : program.inherited) ::fcntl(descriptor, F_SETFD, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(program.output, STDOUT_FILENO);
  ::dup2(program.output, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program.arguments[0], program.arguments, program.environment);
  ::_exit(kNoProgram);
}

/// Of /proc/PID/stat; 0 if there is no such process.
pid_t parent_of(const char* pid) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), "/proc/%s/stat", pid);
  const int file = ::open(text.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  text[static_cast<std::size_t>(std::max<ssize_t>(n, 0))] = '\0';
  const char* name_end = std::strrchr(text.data(), ')');  // the name may have any characters
  pid_t parent = 0;
  if (name_end == nullptr || std::sscanf(name_end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

/// Kills the children of this process: as they die, theirs become its own.
void kill_children() {
  DIR* processes = ::opendir("/proc");
  if (processes == nullptr) return;
  const pid_t self = ::getpid();
  while (const dirent* entry = ::readdir(processes)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (parent_of(entry->d_name) == self) ::kill(std::atoi(entry->d_name), SIGKILL);
  }
  ::closedir(processes);
}

class Keeper {
 public:
  Keeper(pid_t program, pid_t parent, int death_signal)
      : program_(program), parent_(parent), death_signal_(death_signal) {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGCHLD, kEndAll, kAskToEnd}) ::sigaddset(&signals_, signal);
  }
  /// Of a fork of this process, whose parent may be dead already.
  Keeper(pid_t fork, pid_t parent) : Keeper(fork, parent, SIGKILL) { ::sigfillset(&signals_); }

  /// Returns the program's status once no descendant is left.
  int keep() {
    while (!ended_) {
      reap();
      if (ended_) break;
      const int signal = ::sigwaitinfo(&signals_, nullptr);
      if (signal == kAskToEnd) ::kill(program_, SIGTERM);
      if (signal == kEndAll) {
        if (::getppid() != parent_) wait_for_death();
        break;
      }
    }
    end_all();
    return status_;
  }

  /// The same for a fork, to which it passes signals on.
  int keep_fork() {
    while (::getppid() == parent_) {
      reap();
      if (ended_) break;
      const int signal = ::sigwaitinfo(&signals_, nullptr);
      if (signal <= 0 || signal == SIGCHLD) continue;
      ::kill(program_, signal);
      if (signal != SIGTERM) continue;
      wait_for_end(kGraceOfForkMs);
      break;
    }
    end_all();
    return status_;
  }

 private:
  /// Takes note of children that have ended; false if there are none any more.
  bool reap() {
    while (true) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid == program_) {
        status_ = status;
        ended_ = true;
      }
      if (pid <= 0) return pid == 0;
    }
  }

  void wait_for_death() {
    ::kill(program_, death_signal_);
    wait_for_end(kGraceMs);
  }

  /// Waits until the program has ended, or the grace is over. Other children may end meanwhile.
  void wait_for_end(std::int64_t grace_ms) {
    const std::int64_t end_ms = now_ms() + grace_ms;
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    for (reap(); !ended_ && now_ms() < end_ms; reap()) {
      ::sigtimedwait(&child, nullptr, &kStepOfKill);
    }
  }

  void end_all() {
    if (!ended_) ::kill(-program_, SIGKILL);
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    for (int round = 0; round < kMaxRounds || !ended_; ++round) {
      kill_children();
      if (!reap()) return;
      ::sigtimedwait(&child, nullptr, &kStepOfKill);
      if (!reap()) return;
    }
  }

  pid_t program_;
  pid_t parent_;
  int death_signal_;
  sigset_t signals_{};
  int status_ = 0;
  bool ended_ = false;
};

/// The keeper must hold nothing open that others wait to see closed, but for `kept` (-1: nothing).
void let_go_of_descriptors(int kept) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(nothing, standard);
  }
  if (kept > 3) close_descriptors(3, static_cast<unsigned>(kept) - 1, 0);
  close_descriptors(static_cast<unsigned>(std::max(kept, 2)) + 1, ~0U, 0);
}

/// Ends this process as a child ended that had this status.
[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) ::_exit(WEXITSTATUS(status));
  const rlimit no_core{0, 0};  // the child has left one, where they are wanted
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int signal = WTERMSIG(status);
  ::signal(signal, SIG_DFL);
  sigset_t unblocked;
  ::sigemptyset(&unblocked);
  ::sigaddset(&unblocked, signal);
  ::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &unblocked, nullptr);
  ::_exit(128 + signal);
}

void answer(int pipe, int value) {
  [[maybe_unused]] const auto n = ::write(pipe, &value, sizeof value);
}

}  // namespace

void keep_program(const KeptProgram& program, pid_t parent, const sigset_t& mask, int answers) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "longca-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, kEndAll);
  if (::getppid() != parent) ::_exit(kNoProgram);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(program, self, mask);
  if (pid < 0) ::_exit(kNoProgram);
  ::setpgid(pid, pid);  // as the program does: whichever of them runs first
  answer(answers, pid);
  let_go_of_descriptors(answers);
  const int status = Keeper(pid, parent, program.death_signal).keep();
  answer(answers, status);
  ::_exit(0);
}

bool keep_descendants() {
  const pid_t parent = ::getppid();
  const pid_t self = ::getpid();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, no status is kept
  ::fflush(nullptr);
  // Before there is a fork, which may have descendants that nobody keeps sooner than we run again.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = ::fork();
  if (pid <= 0) {
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != self) ::_exit(kNoProgram);
    } else {
      ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return pid == 0;
  }
  ::prctl(PR_SET_NAME, "longca-keeper");
  ::prctl(PR_SET_PDEATHSIG, kEndAll);
  let_go_of_descriptors(-1);
  end_as(Keeper(pid, parent).keep_fork());
}

}  // namespace longca
