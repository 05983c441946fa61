#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "bench/launch/rank_command.h"
#include "bench/launch/rank_session.h"
#include "bench/runner.h"

namespace longca {

struct LaunchOptions {
  CellOptions cell;
  RankStart start;
  int found_ranks = 0;  ///< of the launch that this process is one of; 0 outside of one
};

/// Runs cells over ranks. One start of ranks serves cells of one number of ranks that follow each
/// other. A rank that ends, fails or hangs costs its cell, whose record names the rank, and the
/// next cell gets a new start; no process of the old one is left.
class LaunchRunner {
 public:
  explicit LaunchRunner(LaunchOptions options);
  ~LaunchRunner();
  LaunchRunner(const LaunchRunner&) = delete;
  LaunchRunner& operator=(const LaunchRunner&) = delete;

  /// False if a signal ended the run early (see InterruptGuard), or if ranks are lost that cannot
  /// be started anew, as another launcher has started them. Throws InputError if the ranks refuse
  /// to work together.
  bool run(std::span<const Case> cases, RunListener& listener);

 private:
  /// Why this machine cannot run a cell at all.
  Support available(const Case& c) const;
  bool run_cell(const Case& c, Record& record, std::string& output);
  /// A session of the case's number of ranks; null with the reason in `record`.
  bool start_session(const Case& c, Record& record, bool& interrupted);
  CellOptions options_for(const Case& c) const;

  LaunchOptions options_;
  std::int64_t host_limit_mib_;
  std::filesystem::path scratch_;
  std::unique_ptr<RankSession> session_;
  int failed_starts_ = 0;       ///< in a row, of one number of ranks
  int failed_ranks_ = 0;        ///< that number
  std::string failed_because_;  ///< the last one's reason
  bool launch_lost_ = false;
};

}  // namespace longca
