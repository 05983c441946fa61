#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/case.h"
#include "bench/cell.h"
#include "bench/record.h"
#include "bench/worker_process.h"

namespace longca {

/// Hears of a run as it goes.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void started(const Case& /*c*/) {}
  /// `output`: what the cell's process printed.
  virtual void finished(const Record& record, const std::string& output) = 0;
};

/// Runs one cell: its record, and what its process printed. False if a signal ended it.
using CellFunction = std::function<bool(const Case& c, Record& record, std::string& output)>;

/// Runs cells one after the other and tells `listener`. False if a signal ended the run early (see
/// InterruptGuard); the cell under way is not recorded.
bool run_each(std::span<const Case> cases, RunListener& listener, const CellFunction& run_cell);

struct RunOptions {
  std::vector<std::string> worker;  ///< the command that starts a worker, before "--socket N"
  CellOptions cell;
  std::string dump;  ///< folder that gets one folder per problem and kernel; "" for none
};

/// The command that starts the workers for `cases`: this program, or, where a case's kernel or a
/// plug-in is in Python, a Python process that has this program as a library. If that does not
/// start, this program, told to say why Python's kernels are `unavailable`.
std::vector<std::string> worker_command(const std::vector<std::string>& plugins,
                                        std::span<const Case> cases);

/// Runs cells in worker processes, one after the other. A worker that ends, hangs or takes too much
/// memory costs its cell, and the next cell gets a new one. Cells that follow each other with the
/// same problem share inputs and reference.
class Runner {
 public:
  explicit Runner(RunOptions options);

  /// False if a signal ended the run early (see InterruptGuard); the cell under way is not
  /// recorded.
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  class Attempt;

  /// Nothing if interrupted.
  bool run_cell(const Case& c, Record& record, std::string& output);
  CellOptions options_for(const Case& c) const;

  RunOptions options_;
  std::int64_t host_limit_mib_;  ///< of a worker where the user set none
  std::unique_ptr<WorkerProcess> worker_;
};

}  // namespace longca
