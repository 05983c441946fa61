#pragma once

#include <csignal>
#include <functional>
#include <span>
#include <string>

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
/// makes blocking calls return early, a second one ends the process.
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

}  // namespace longca
