#include "bench/run/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>
#include <system_error>

#include "bench/cell/cell_runner.h"
#include "bench/cell/dump.h"
#include "bench/plugin_loader.h"
#include "bench/run/state_watch.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 1000ms;  // for a worker whose socket has closed to end by itself

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsData = false;  // sanitizers map terabytes of shadow memory
#else
constexpr bool kLimitsData = true;
#endif

/// Private writable memory of this process in bytes, as RLIMIT_DATA counts it.
std::int64_t data_in_use() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoll(line.substr(7)) << 10;
  }
  return 0;
}

/// Sets RLIMIT_DATA, so that the system refuses memory that a kernel takes past the tracker instead
/// of letting its out-of-memory killer pick a process. The slack covers what is not the cell's:
/// stacks of threads, the buffer that flushes caches. Bytes; 0 lifts the limit.
void limit_data(std::int64_t memory_limit) {
  constexpr std::int64_t kSlack = std::int64_t{1} << 30;
  constexpr std::int64_t kPerThread = std::int64_t{16} << 20;
  rlimit limit{};
  if (!kLimitsData || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const std::int64_t bytes = data_in_use() + memory_limit + kSlack + kPerThread * available_cpus();
  limit.rlim_cur =
      memory_limit == 0 ? limit.rlim_max : std::min(limit.rlim_max, static_cast<rlim_t>(bytes));
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace

WorkerProcess::WorkerProcess(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "no socket for a worker");
  }
  const std::string secret = make_secret();
  channel_ = std::make_unique<LineChannel>(ends[0], secret);
  const FileDescriptor worker_end(ends[1]);
  std::vector<std::string> arguments = command;
  arguments.insert(arguments.end(), {"--socket", std::to_string(worker_end.get())});
  ChildProcess::Options options;
  options.environment = {{kSecretVariable, secret}};
  options.inherited = {worker_end.get()};
  process_ = std::make_unique<ChildProcess>(arguments, options);
}

WorkerProcess::Event WorkerProcess::wait(std::chrono::milliseconds timeout,
                                         nlohmann::json& message) {
  const auto take = [&] {
    auto next = channel_->next();
    if (next) message = std::move(*next);
    return next.has_value();
  };
  if (take()) return Event::message;
  // A process that has ended is gone even if a copy of its socket is still open elsewhere.
  std::array<pollfd, 2> poll_for{pollfd{channel_->socket(), POLLIN, 0},
                                 pollfd{process_->end_descriptor(), POLLIN, 0}};
  if (::poll(poll_for.data(), poll_for.size(), static_cast<int>(timeout.count())) <= 0) {
    return Event::nothing;
  }
  const bool arrived = poll_for[0].revents != 0;
  const bool open = !arrived || channel_->read_available();
  if (take()) return Event::message;
  return !open || (!arrived && poll_for[1].revents != 0) ? Event::gone : Event::nothing;
}

std::optional<int> WorkerProcess::reap() {
  pollfd end{process_->end_descriptor(), POLLIN, 0};
  const bool ended = ::poll(&end, 1, static_cast<int>(kGrace.count())) > 0;
  const int status = process_->kill();
  return ended ? std::optional(status) : std::nullopt;
}

namespace {

/// The parent's next request; nothing once the parent is gone. A line that is no message also ends
/// the worker: a kernel has read from its socket.
std::optional<nlohmann::json> next_request(LineChannel& channel) {
  try {
    return channel.receive();
  } catch (const BadMessage&) {
    return std::nullopt;
  }
}

}  // namespace

void run_worker(int socket, const std::vector<std::string>& plugins) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  LineChannel channel(socket, take_secret());
  StateWatch watch(plugins.empty() ? StateWatch::Threads::caller
                                   : StateWatch::Threads::caller_and_pool);
  for (const std::string& plugin : plugins) load_plugin(plugin);
  watch.restore();
  CellRunner runner([&](std::string_view stage) { channel.send({{"stage", stage}}); }, &watch);
  std::int64_t data_limit = 0;
  while (const auto message = next_request(channel)) {
    const auto c = message->at("case").get<Case>();
    const auto options = message->at("options").get<CellOptions>();
    // On a GPU the limit is the device's: its driver and libraries take host memory as they like.
    const std::int64_t wanted = c.device == "cpu" ? options.limits.memory_limit_mib << 20 : 0;
    if (wanted != data_limit) limit_data(data_limit = wanted);
    channel.send({{"stage", "set-up"}});
    Record record;
    try {
      record = runner.run(c, options);
    } catch (const DumpFailed& failed) {  // ends the run, and with it this process
      channel.send({{"dump_failed", failed.what()}, {"path_is_wrong", failed.path_is_wrong()}});
      continue;
    }
    const bool ends = runner.device_lost() || runner.is_spoilt();
    if (!channel.send({{"record", record}, {"ends", ends}})) return;
    if (ends) {
      std::fflush(nullptr);
      ::_exit(0);  // destructors could wait for the lost device for ever
    }
  }
}

}  // namespace longca
