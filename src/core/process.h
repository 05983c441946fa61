#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/file_descriptor.h"

namespace longca {

/// A program that this one has started: an empty stdin, its output kept in memory, a process group
/// of its own. None of its descendants outlives it or this process, in whatever group or session
/// (process_keeper.h).
class ChildProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  struct Options {
    Environment environment{};     ///< over this process's own
    int death_signal = SIGKILL;    ///< that it gets if this process dies
    std::vector<int> inherited{};  ///< descriptors beside 0, 1, 2, under their own numbers
    bool inherits_all = false;     ///< all descriptors without FD_CLOEXEC, not only those
  };

  /// Starts `command` (a program's path and its arguments). Throws std::system_error if the system
  /// refuses.
  explicit ChildProcess(const std::vector<std::string>& command, const Options& options);
  explicit ChildProcess(const std::vector<std::string>& command)
      : ChildProcess(command, Options{}) {}
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Whether it is gone, and all its descendants with it.
  bool has_ended() const;
  /// A descriptor to poll for POLLIN: readable once it has_ended.
  int end_descriptor() const { return answers_.get(); }
  /// Kills it and its descendants at once and waits; waitpid's status.
  int kill();
  /// Gives it `grace` to end by itself, then kills; waitpid's status.
  int reap(std::chrono::milliseconds grace);
  /// Sends it SIGTERM, then reaps.
  int terminate(std::chrono::milliseconds grace);

  /// Bytes that it has printed since the last take_output. They take up RAM.
  std::int64_t printed_bytes() const;
  /// What it has printed since the last call; the last 64 KiB if that is more.
  std::string take_output();

 private:
  void start_keeper(const std::vector<std::string>& command, const Options& options);
  int read_answer() const;

  pid_t keeper_ = -1;
  pid_t pid_ = -1;
  FileDescriptor answers_;  ///< of the keeper: the process id, then the status
  FileDescriptor output_;   ///< a file in memory that is its stdout and stderr
};

/// waitpid, again if a signal interrupts it; the status.
int wait_for_process(pid_t pid);

/// "was ended by SIGSEGV (Segmentation fault)" or "ended itself with exit code 3", from waitpid's
/// status.
std::string describe_process_end(int wait_status);

/// The last line of a process's output that is not blank, cut at 200 bytes.
std::string last_line(const std::string& output);

/// What a file of /proc says about a process or thread; "" if that has ended, also while it is
/// read.
std::string proc_text(const std::filesystem::path& file);

/// A process's memory in RAM, in bytes; 0 if there is no such process.
std::int64_t resident_bytes(pid_t pid);

/// The executable `name` on the PATH, or `name` itself if it has a slash, as an absolute path;
/// empty if there is none.
std::filesystem::path find_program(const std::string& name);

/// This host's name as the system has it.
std::string host_name();

/// `texts` as execv takes them, with a null pointer behind; they outlive its use.
std::vector<char*> argument_pointers(std::vector<std::string>& texts);

}  // namespace longca
