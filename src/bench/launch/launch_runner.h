#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "bench/launch/launcher.h"
#include "bench/launch/rank_session.h"
#include "bench/run/runner.h"

namespace longca {

struct LaunchOptions {
  CellOptions cell;
  RankStart start;
  int found_ranks = 0;  ///< size of the launch that this process is part of; 0 outside of one
};

/// Runs cells over ranks. Ranks are started once for consecutive cells with the same number of
/// ranks, and apart for each kernel of a plug-in. A rank that ends, fails or hangs costs its cell,
/// whose record names the rank; the ranks are then started anew, and no process of the old ones is
/// left.
class LaunchRunner {
 public:
  explicit LaunchRunner(LaunchOptions options);
  ~LaunchRunner();
  LaunchRunner(const LaunchRunner&) = delete;
  LaunchRunner& operator=(const LaunchRunner&) = delete;

  /// False if a signal ended the run early (see InterruptGuard), or if ranks are lost that another
  /// launcher has started, so that they cannot be started again. Throws InputError if the ranks
  /// refuse to work together.
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  /// Whether this machine can run the cell at all, else why not.
  Support available(const Case& c) const;
  bool run_cell(const Case& c, Record& record, std::string& output);
  /// A session of the case's number of ranks; null with the reason in `record`.
  bool start_session(const Case& c, Record& record, bool& interrupted);
  CellOptions options_for(const Case& c) const;

  LaunchOptions options_;
  std::int64_t host_limit_mib_;
  std::filesystem::path scratch_;
  std::unique_ptr<RankSession> session_;
  std::string guest_;  ///< the plug-in's kernel that session_ is for; empty: those of this program
  int failed_starts_ = 0;       ///< in a row, of one number of ranks
  int failed_ranks_ = 0;        ///< that number
  std::string failed_because_;  ///< the last one's reason
  bool launch_lost_ = false;
};

}  // namespace longca
