#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/protocol.h"

namespace longca {

/// The runner's end of a worker process: its socket, what it prints, its life. The worker has a
/// process group of its own, which is killed with it, and is killed by the system if this process
/// dies.
class WorkerProcess {
 public:
  /// Starts `command` (a program and its arguments) with "--socket N" appended. Throws
  /// std::system_error if the system refuses.
  explicit WorkerProcess(const std::vector<std::string>& command);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// False if the worker is gone.
  bool send(const nlohmann::json& message) { return channel_->send(message); }

  enum class Event : std::uint8_t { message, gone, nothing };
  /// Waits for a message (then in `message`), the worker's end, or `timeout`, or a signal.
  Event wait(std::chrono::milliseconds timeout, nlohmann::json& message);

  /// Memory in RAM, in bytes; 0 if the worker is gone.
  std::int64_t resident_bytes() const;
  /// Ends the process group and waits; waitpid's status.
  int kill();
  /// The same for a worker whose socket closed: gives it a moment to end by itself, so that its
  /// status says how.
  int reap();

  /// What the worker has printed since the last call.
  std::string take_output();

 private:
  pid_t pid_ = -1;
  int output_ = -1;  ///< a file in memory that is the worker's stdout and stderr
  std::unique_ptr<LineChannel> channel_;
};

}  // namespace longca
