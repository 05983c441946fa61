#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/run/protocol.h"
#include "core/process.h"

namespace longca {

/// A worker process seen from the runner: its socket, its output, its life. The system kills it if
/// this process dies.
class WorkerProcess {
 public:
  /// Starts `command` (a program and its arguments) with "--socket N" appended. Throws
  /// std::system_error if the system refuses.
  explicit WorkerProcess(const std::vector<std::string>& command);

  /// False if the worker is gone.
  bool send(const nlohmann::json& message) { return channel_->send(message); }

  enum class Event : std::uint8_t { message, gone, nothing };
  /// Waits for a message (then in `message`), the worker's end, `timeout` or a signal. Throws
  /// BadMessage.
  Event wait(std::chrono::milliseconds timeout, nlohmann::json& message);

  /// Memory in RAM, in bytes; 0 if the worker is gone.
  std::int64_t resident_bytes() const { return longca::resident_bytes(process_->pid()); }
  /// Of RAM, what holds its output.
  std::int64_t printed_bytes() const { return process_->printed_bytes(); }
  /// Kills it and its descendants, and waits; waitpid's status.
  int kill() { return process_->kill(); }
  /// The same for a worker whose socket has closed: first waits a moment for it to end by itself,
  /// so that its status says how; nothing if it did not.
  std::optional<int> reap();

  /// What the worker has printed since the last call.
  std::string take_output() { return process_->take_output(); }

 private:
  std::unique_ptr<LineChannel> channel_;
  std::unique_ptr<ChildProcess> process_;
};

/// The worker process itself: loads the plug-ins, then runs the cells that arrive on `socket` until
/// its other end closes or sends what is no message. The channel's secret is that of the
/// environment. A cell that ends this process costs the run that cell alone.
void run_worker(int socket, const std::vector<std::string>& plugins);

}  // namespace longca
