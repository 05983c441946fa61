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

/// The runner's handle on a worker process: its socket, its output, its end. The system kills the
/// worker if this process dies.
class WorkerProcess {
 public:
  /// Starts `command` (a program and its arguments) with "--socket N" appended. Throws
  /// std::system_error if the system refuses.
  explicit WorkerProcess(const std::vector<std::string>& command);

  /// False if the worker is gone.
  bool send(const nlohmann::json& message) { return channel_->send(message); }

  enum class Event : std::uint8_t { message, gone, nothing };
  /// Waits for a message (returned in `message`) or the worker's end, at most `timeout` or until a
  /// signal. Throws BadMessage.
  Event wait(std::chrono::milliseconds timeout, nlohmann::json& message);

  /// Bytes of RAM that the worker uses; 0 if it is gone.
  std::int64_t resident_bytes() const { return longca::resident_bytes(process_->pid()); }
  /// Bytes of the worker's output, which is kept in RAM.
  std::int64_t printed_bytes() const { return process_->printed_bytes(); }
  /// Kills the worker and its descendants, waits for it, and returns waitpid's status.
  int kill() { return process_->kill(); }
  /// The same for a worker whose socket has closed: first waits a moment for it to end by itself.
  /// Returns nothing if it did not.
  std::optional<int> reap();

  /// What the worker has printed since the last call.
  std::string take_output() { return process_->take_output(); }

 private:
  std::unique_ptr<LineChannel> channel_;
  std::unique_ptr<ChildProcess> process_;
};

/// The main function of a worker: loads the plug-ins, then runs the cells that arrive on `socket`
/// until its other end closes or sends what is no message. The channel's secret comes from the
/// environment.
void run_worker(int socket, const std::vector<std::string>& plugins);

}  // namespace longca
