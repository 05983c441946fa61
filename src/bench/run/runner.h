#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/cell/cell_runner.h"
#include "bench/run/run_cells.h"
#include "bench/run/worker.h"

namespace longca {

struct RunOptions {
  std::vector<std::string> worker;  ///< the command that starts a worker, before "--socket N"
  CellOptions cell;
  std::string dump;  ///< folder that gets one folder per problem and kernel; "" for none
};

/// The command that starts the workers for `cases`: this program or, where a case's kernel or a
/// plug-in is in Python, a Python process that loads this program as a library. If Python does not
/// start, this program, with the reason that makes Python's kernels `unavailable`.
std::vector<std::string> worker_command(const std::vector<std::string>& plugins,
                                        std::span<const Case> cases);

/// Runs cells in worker processes, one after the other. A worker that ends, hangs or takes too much
/// memory costs its cell only, and the next cell gets a new one. Consecutive cells of one problem
/// share inputs and reference.
class Runner {
 public:
  explicit Runner(RunOptions options);

  /// False if a signal ended the run early (see run_cells).
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  class Attempt;

  /// False if interrupted.
  bool run_cell(const Case& c, Record& record, std::string& output);
  CellOptions options_for(const Case& c) const;

  RunOptions options_;
  std::int64_t host_limit_mib_;  ///< a worker's limit where the user set none
  std::unique_ptr<WorkerProcess> worker_;
};

}  // namespace longca
