#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "bench/record/record.h"
#include "bench/suite/case.h"

namespace longca {

/// Receives the events of a run.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void started(const Case& /*c*/) {}
  /// `output`: what the cell's process printed.
  virtual void finished(const Record& record, const std::string& output) = 0;
};

/// Runs one cell and fills in its record and its processes' output. False if the run must end: a
/// signal came, or a launch is lost.
using CellFunction = std::function<bool(const Case& c, Record& record, std::string& output)>;

/// Runs cells one after the other. False if a signal (see InterruptGuard) or `run_cell` ended the
/// run early; the cell that was running is not recorded.
bool run_cells(std::span<const Case> cases, RunListener& listener, const CellFunction& run_cell);

/// While a guard exists, SIGINT and SIGTERM do not end the process: the first is remembered and
/// makes blocking calls return early, a second one ends the process if it comes more than 0.3 s
/// later.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// The signal received, or 0.
  static int signal();

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

/// For a run that computes its cells in this process, where nothing looks for a signal before the
/// cell's end: ends the process, with 128 plus the signal's number, if this object still exists
/// kInterruptGrace after a signal that an InterruptGuard has received. No destructor runs then.
class InterruptDeadline {
 public:
  static constexpr std::chrono::milliseconds kInterruptGrace{500};

  /// `last_words` is called first, on a thread of its own.
  explicit InterruptDeadline(std::function<void(int signal)> last_words);
  ~InterruptDeadline();
  InterruptDeadline(const InterruptDeadline&) = delete;
  InterruptDeadline& operator=(const InterruptDeadline&) = delete;

 private:
  void watch();

  std::function<void(int signal)> last_words_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread watcher_;
};

}  // namespace longca
