#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace longca {

/// A program that this one has started: nothing on its stdin, what it prints kept in memory. It has
/// a process group of its own, which is killed with it.
class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// Starts `command` (a program's path and its arguments) with `environment` over this process's
  /// own. The system sends it `death_signal` if this process dies. Throws std::system_error if the
  /// system refuses.
  explicit ChildProcess(const std::vector<std::string>& command,
                        const Environment& environment = {}, int death_signal = SIGKILL);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether it has ended, by itself or not.
  bool has_ended() const;
  /// Ends the process group at once and waits; waitpid's status.
  int kill();
  /// The same, but gives it `grace` to end by itself.
  int reap(std::chrono::milliseconds grace);
  /// The same, but asks it to end first (SIGTERM).
  int terminate(std::chrono::milliseconds grace);

  /// What it has printed since the last call; the end of it, if that is much.
  std::string take_output();

 private:
  pid_t pid_ = -1;
  int output_ = -1;  ///< a file in memory that is its stdout and stderr
};

/// Memory in RAM, in bytes; 0 if there is no such process.
std::int64_t resident_bytes(pid_t pid);

}  // namespace longca
