#include "core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/process_keeper.h"

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
  for (const auto& [name, value] : over) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Options& options)
    : output_(::memfd_create("longca-output", MFD_CLOEXEC)) {
  if (!output_.is_open()) throw_system_error("no file for a process's output");
  ::fcntl(output_.get(), F_SETFL, O_APPEND);
  start_keeper(command, options);
  pid_ = read_answer();
  if (pid_ > 0) return;
  wait_for_process(keeper_);
  errno = EAGAIN;
  throw_system_error("no process");
}

void ChildProcess::start_keeper(const std::vector<std::string>& command, const Options& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system_error("no pipe to a process");
  answers_ = FileDescriptor(ends[0]);
  const FileDescriptor write_end(ends[1]);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(options.environment);
  const std::vector<char*> argument_list = argument_pointers(arguments);
  const std::vector<char*> variable_list = argument_pointers(variables);
  const KeptProgram program{.arguments = argument_list.data(),
                            .environment = variable_list.data(),
                            .output = output_.get(),
                            .inherited = options.inherited,
                            .inherits_all = options.inherits_all,
                            .death_signal = options.death_signal};
  const pid_t parent = ::getpid();
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of this process may run in the fork
  keeper_ = ::fork();
  if (keeper_ == 0) keep_program(program, parent, before, write_end.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper_ < 0) throw_system_error("no process");
}

/// Blocks until the keeper has said more; -1 if it is gone.
int ChildProcess::read_answer() const {
  int value = -1;
  ssize_t n = 0;
  do {
    n = ::read(answers_.get(), &value, sizeof value);
  } while (n < 0 && errno == EINTR);
  return n == sizeof value ? value : -1;
}

bool ChildProcess::has_ended() const {
  if (pid_ < 0) return true;
  pollfd answer{answers_.get(), POLLIN, 0};
  return ::poll(&answer, 1, 0) > 0;
}

int ChildProcess::kill() {
  if (pid_ < 0) return 0;
  ::kill(keeper_, kEndAll);
  int status = read_answer();
  if (status == -1) {  // somebody has killed the keeper, whose end is the program's
    ::kill(-pid_, SIGKILL);
    status = SIGKILL;
  }
  wait_for_process(keeper_);
  pid_ = keeper_ = -1;
  return status;
}

int ChildProcess::reap(std::chrono::milliseconds grace) {
  for (auto waited = 0ms; !has_ended() && waited < grace; waited += 5ms) {
    std::this_thread::sleep_for(5ms);
  }
  return kill();
}

int ChildProcess::terminate(std::chrono::milliseconds grace) {
  if (pid_ > 0) ::kill(keeper_, kAskToEnd);
  return reap(grace);
}

std::int64_t ChildProcess::printed_bytes() const {
  const off_t end = ::lseek(output_.get(), 0, SEEK_END);
  return std::max<off_t>(end, 0);
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

std::string proc_text(const std::filesystem::path& file) {
  // A read fails where the process ends behind the opening: an istreambuf_iterator throws then.
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
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
