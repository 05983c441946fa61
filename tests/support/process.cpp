#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

namespace longca::testing {
namespace {

/// Both ends are closed on exec, so that no other child keeps them open.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

struct Pipes {
  Pipe in, out, err;
};

[[noreturn]] void become(const std::vector<std::string>& command, const ProcessOptions& options,
                         const Pipes& pipes) {
  dup2(pipes.in.read_end, STDIN_FILENO);
  dup2(pipes.out.write_end, STDOUT_FILENO);
  dup2(pipes.err.write_end, STDERR_FILENO);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) _exit(127);
  std::vector<char*> arguments;
  for (const auto& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

/// Takes what is there into `text`; closes the end of file.
void drain(int& end, std::string& text) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(end, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    Pipe::close_end(end);
  }
}

/// Feeds and reads until the outputs are closed or the time is over.
void exchange(Pipes& pipes, const ProcessOptions& options, ProcessResult& result, pid_t child) {
  const auto start = std::chrono::steady_clock::now();
  std::size_t written = 0;
  bool killed = false;
  while (pipes.out.read_end >= 0 || pipes.err.read_end >= 0) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (elapsed.count() > options.timeout_s && !killed) {
      kill(child, SIGKILL);
      killed = true;
    }
    if (written == options.input.size()) Pipe::close_end(pipes.in.write_end);
    std::array<pollfd, 3> waiting{{{pipes.out.read_end, POLLIN, 0},
                                   {pipes.err.read_end, POLLIN, 0},
                                   {pipes.in.write_end, POLLOUT, 0}}};
    poll(waiting.data(), waiting.size(), 100);
    if (waiting[0].revents != 0) drain(pipes.out.read_end, result.out);
    if (waiting[1].revents != 0) drain(pipes.err.read_end, result.err);
    if (waiting[2].revents != 0) {
      const ssize_t count = write(pipes.in.write_end, options.input.data() + written,
                                  std::min<std::size_t>(options.input.size() - written, 4096));
      written = count < 0 ? options.input.size() : written + static_cast<std::size_t>(count);
    }
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  Pipes pipes;
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    become(command, options, pipes);
  }
  Pipe::close_end(pipes.in.read_end);
  Pipe::close_end(pipes.out.write_end);
  Pipe::close_end(pipes.err.write_end);
  ProcessResult result;
  exchange(pipes, options, result, child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (result.exit_code == 127) throw std::runtime_error("cannot start " + command.front());
  return result;
}

std::string program_of_tests() {
  // Tests that were carried to another machine name the program that was carried with them.
  const char* carried = std::getenv("LONGCA_TEST_PROGRAM");
  return carried != nullptr ? carried : LONGCA_PROGRAM;
}

ProcessResult run_longca(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  std::vector<std::string> command{program_of_tests()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_process(command, options);
}

}  // namespace longca::testing
