#pragma once

#include <cstdint>
#include <map>
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
  /// By the file of a plug-in: the command that starts a worker for its kernels.
  std::map<std::string, std::vector<std::string>> plugin_workers{};
  CellOptions cell;
  std::string dump;  ///< folder that gets one folder per problem and kernel; "" for none
};

/// Sets the commands that start the workers for `cases`: this program or, where a kernel or plug-in
/// is in Python, a Python process that loads this program as a library. If Python does not start,
/// it is this program, told why Python's kernels are `unavailable`. A worker loads the one plug-in
/// whose kernel it runs, or none.
void set_workers(RunOptions& options, const std::vector<std::string>& plugins,
                 std::span<const Case> cases);

/// Runs cells in worker processes, one after the other. A worker that ends, hangs or takes too much
/// memory costs its cell only, and the next cell gets a new one. Consecutive cells of one problem
/// share inputs and reference. A kernel of a plug-in gets a worker of its own, so that nothing it
/// leaves behind outlives that worker.
class Runner {
 public:
  explicit Runner(RunOptions options);

  /// False if a signal ended the run early (see run_cells). Throws InputError or SystemError if a
  /// dump cannot be written.
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  class Attempt;

  /// False if interrupted.
  bool run_cell(const Case& c, Record& record, std::string& output);
  CellOptions options_for(const Case& c) const;
  /// Makes worker_ serve the case, by a new process if there is none or it is of another plug-in.
  void provide_worker(const Case& c);

  RunOptions options_;
  std::int64_t host_limit_mib_;  ///< a worker's limit where the user set none
  std::unique_ptr<WorkerProcess> worker_;
  std::string guest_;  ///< the plug-in's kernel that worker_ is for; empty: those of this program
};

}  // namespace longca
