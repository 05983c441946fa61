#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/launch/launcher.h"
#include "bench/launch/rank_session.h"
#include "bench/launch/scratch_folder.h"
#include "bench/run/runner.h"

namespace longca {

struct LaunchOptions {
  CellOptions cell;
  std::string trace;  ///< the file for the trace (rank_trace.h) of the only cell; "" for none
  RankStart start;
  int found_ranks = 0;  ///< size of the launch that this process is part of; 0 outside of one
};

/// Runs cells over ranks. Ranks are started once for consecutive cells with the same number of
/// ranks, and separately for each kernel of a plug-in. A rank that ends, fails or hangs costs its
/// cell, whose record names the rank; all ranks are then ended and started again.
class LaunchRunner {
 public:
  explicit LaunchRunner(LaunchOptions options);
  ~LaunchRunner();
  LaunchRunner(const LaunchRunner&) = delete;
  LaunchRunner& operator=(const LaunchRunner&) = delete;

  /// False if a signal ended the run early (see InterruptGuard), or if ranks are lost that another
  /// launcher has started, so that they cannot be started again. Throws InputError if the ranks
  /// refuse to work together, and InputError or SystemError, after all cells were recorded, if the
  /// trace cannot be written.
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  /// Ok if this machine can run the cell, else why not.
  Support available(const Case& c) const;
  /// False if a signal ended it, or if the launch is lost.
  bool run_cell(const Case& c, Record& record, std::string& output);
  /// Makes session_ serve the case's number of ranks and its plug-in. If it cannot, returns false
  /// with the reason in `record`; sets `interrupted` if a signal was the reason.
  bool start_session(const Case& c, Record& record, bool& interrupted);
  CellOptions options_for(const Case& c) const;

  LaunchOptions options_;
  std::int64_t host_limit_mib_;  ///< of all ranks of this host together
  ScratchFolder scratch_;
  std::unique_ptr<RankSession> session_;
  std::vector<std::string> trace_;  ///< of the cell that was traced, if it is ok: events by rank
  std::string guest_;  ///< the plug-in's kernel that session_ is for; empty: those of this program
  int failed_starts_ = 0;  ///< failed starts in a row with failed_ranks_ ranks
  int failed_ranks_ = 0;
  std::string failed_because_;  ///< the reason of the last one
  bool launch_lost_ = false;    ///< the ranks of a found launch have ended
};

}  // namespace longca
