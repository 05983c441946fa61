#include "bench/child_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>

namespace longca {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// "NAME=value" of this process's variables with `over` in place of those of the same name.
std::vector<std::string> environment_with(const ChildProcess::Environment& over) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::ranges::any_of(over, [&](const auto& variable) { return variable.first == name; });
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : over) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent, int output,
                         int death_signal) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Environment& environment,
                           int death_signal) {
  output_ = ::memfd_create("longca-output", MFD_CLOEXEC);
  if (output_ < 0) throw_system_error("no file for a process's output");
  ::fcntl(output_, F_SETFL, O_APPEND);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> variable_pointers = pointers_to(variables);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    become(argument_pointers.data(), variable_pointers.data(), parent, output_, death_signal);
  }
  if (pid_ < 0) {
    ::close(output_);
    throw_system_error("no process");
  }
  ::setpgid(pid_, pid_);  // also here: whichever comes first
}

ChildProcess::~ChildProcess() {
  kill();
  ::close(output_);
}

// Without reaping, so that the group's number stays its own until it is killed.
bool ChildProcess::has_ended() const {
  if (pid_ < 0) return true;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

int ChildProcess::kill() {
  if (pid_ < 0) return 0;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // should it have left its group
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

int ChildProcess::reap(std::chrono::milliseconds grace) {
  for (auto waited = 0ms; !has_ended() && waited < grace; waited += 5ms) {
    std::this_thread::sleep_for(5ms);
  }
  return kill();
}

int ChildProcess::terminate(std::chrono::milliseconds grace) {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
  return reap(grace);
}

std::string ChildProcess::take_output() {
  constexpr off_t kMost = 65536;
  const off_t end = ::lseek(output_, 0, SEEK_END);
  if (end <= 0) return "";
  std::string text(static_cast<std::size_t>(std::min(end, kMost)), '\0');
  const off_t begin = end - static_cast<off_t>(text.size());
  const ssize_t n = ::pread(output_, text.data(), text.size(), begin);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (::ftruncate(output_, 0) != 0) return "";
  return text;
}

std::int64_t resident_bytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  return statm >> size >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace longca
