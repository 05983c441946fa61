#include "core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

namespace longca {
namespace {

namespace fs = std::filesystem;
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

/// Runs between fork and exec: makes only calls that are async-signal-safe.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent, int output,
                         int death_signal) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Environment& environment,
                           int death_signal)
    : output_(::memfd_create("longca-output", MFD_CLOEXEC)) {
  if (!output_.is_open()) throw_system_error("no file for a process's output");
  ::fcntl(output_.get(), F_SETFL, O_APPEND);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argument_list = argument_pointers(arguments);
  const std::vector<char*> variable_list = argument_pointers(variables);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    become(argument_list.data(), variable_list.data(), parent, output_.get(), death_signal);
  }
  if (pid_ < 0) throw_system_error("no process");
  ::setpgid(pid_, pid_);  // as the child does: whichever of them runs first
}

// Leaves the process unreaped, so that its group's number cannot be reused before it is killed.
bool ChildProcess::has_ended() const {
  if (pid_ < 0) return true;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

int ChildProcess::kill() {
  if (pid_ < 0) return 0;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // in case it has left its group
  const int status = wait_for_process(pid_);
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
  constexpr off_t kMaxBytes = 65536;
  const int file = output_.get();
  const off_t end = ::lseek(file, 0, SEEK_END);
  if (end <= 0) return "";
  std::string text(static_cast<std::size_t>(std::min(end, kMaxBytes)), '\0');
  const off_t begin = end - static_cast<off_t>(text.size());
  const ssize_t n = ::pread(file, text.data(), text.size(), begin);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (::ftruncate(file, 0) != 0) return "";
  return text;
}

int wait_for_process(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string describe_process_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    // Nothing in this program sends it here: the system does when memory runs out.
    if (number == SIGKILL) return "was killed from outside, perhaps for lack of memory (SIGKILL)";
    const char* name = sigabbrev_np(number);
    return fmt::format("was ended by SIG{} ({})", name != nullptr ? name : std::to_string(number),
                       sigdescr_np(number) != nullptr ? sigdescr_np(number) : "unknown signal");
  }
  return fmt::format("ended itself with exit code {}", WEXITSTATUS(wait_status));
}

std::string last_line(const std::string& output) {
  const std::size_t end = output.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return "";
  const std::size_t newline = output.rfind('\n', end);
  const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return output.substr(begin, std::min<std::size_t>(end + 1 - begin, 200));
}

std::int64_t resident_bytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  return statm >> size >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

fs::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return is_program(name) ? fs::absolute(name) : fs::path();
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / name)) return fs::path(folder) / name;
  }
  return {};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<char*> argument_pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace longca
