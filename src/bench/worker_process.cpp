#include "bench/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>

#include "core/error.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 1000ms;  // for a worker whose socket closed to end by itself

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// Between fork and exec: only calls that are safe there.
[[noreturn]] void become_worker(char* const* arguments, pid_t parent, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv(arguments[0], arguments);
  ::_exit(127);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_system_error("no socket for a worker");
  }
  channel_ = std::make_unique<LineChannel>(ends[0]);
  output_ = ::memfd_create("longca-worker-output", MFD_CLOEXEC);
  if (output_ < 0) throw_system_error("no file for a worker's output");
  ::fcntl(output_, F_SETFL, O_APPEND);
  // The worker's end survives its exec, under the number that its arguments say.
  const int worker_end = ::fcntl(ends[1], F_DUPFD, 3);
  ::close(ends[1]);
  std::vector<std::string> arguments = command;
  arguments.insert(arguments.end(), {"--socket", std::to_string(worker_end)});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become_worker(pointers.data(), parent, output_);
  ::close(worker_end);
  if (pid_ < 0) throw_system_error("no process for a worker");
  ::setpgid(pid_, pid_);  // also here: whichever comes first
}

WorkerProcess::~WorkerProcess() {
  kill();
  if (output_ >= 0) ::close(output_);
}

WorkerProcess::Event WorkerProcess::wait(std::chrono::milliseconds timeout,
                                         nlohmann::json& message) {
  const auto take = [&] {
    auto next = channel_->next();
    if (next) message = std::move(*next);
    return next.has_value();
  };
  if (take()) return Event::message;
  pollfd poll_for{channel_->socket(), POLLIN, 0};
  if (::poll(&poll_for, 1, static_cast<int>(timeout.count())) <= 0) return Event::nothing;
  const bool open = channel_->read_available();
  if (take()) return Event::message;
  return open ? Event::nothing : Event::gone;
}

std::int64_t WorkerProcess::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  return statm >> size >> resident ? resident * sysconf(_SC_PAGESIZE) : 0;
}

int WorkerProcess::kill() {
  if (pid_ < 0) return 0;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // should it have left its group
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

int WorkerProcess::reap() {
  for (auto waited = 0ms; pid_ >= 0 && waited < kGrace; waited += 5ms) {
    // Without reaping, so that the group's number stays its own until it is killed.
    siginfo_t info{};
    const auto id = static_cast<id_t>(pid_);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) break;
    std::this_thread::sleep_for(5ms);
  }
  return kill();
}

std::string WorkerProcess::take_output() {
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

}  // namespace longca
