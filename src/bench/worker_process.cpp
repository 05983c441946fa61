#include "bench/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace longca {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 1000ms;  // for a worker whose socket closed to end by itself

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "no socket for a worker");
  }
  channel_ = std::make_unique<LineChannel>(ends[0]);
  // The worker's end survives its exec, under the number that its arguments say.
  const LineChannel worker_end(::fcntl(ends[1], F_DUPFD, 3));
  ::close(ends[1]);
  std::vector<std::string> arguments = command;
  arguments.insert(arguments.end(), {"--socket", std::to_string(worker_end.socket())});
  process_ = std::make_unique<ChildProcess>(arguments);
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

int WorkerProcess::reap() {
  return process_->reap(kGrace);
}

}  // namespace longca
