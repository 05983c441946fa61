#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench/case.h"
#include "bench/device_clock.h"
#include "bench/record.h"
#include "bench/suite.h"

namespace longca {

/// How a cell is to be run.
struct CellOptions {
  bool timed = true;                          ///< false: verified only
  RunLimits limits;                           ///< memory_limit_mib = 0: no limit
  std::optional<std::filesystem::path> dump;  ///< writes inputs and outputs into this folder
};

/// Runs cells in this process, keeping the inputs and the reference of the current problem for the
/// next one. Whatever a kernel throws becomes the cell's status; what ends the process is the
/// parent's to see.
class CellRunner {
 public:
  /// Called with what begins now: "inputs", "reference", "plan", "forward", "verify", "backward",
  /// "time".
  using StageListener = std::function<void(std::string_view stage)>;

  explicit CellRunner(StageListener listener);
  ~CellRunner();
  CellRunner(const CellRunner&) = delete;
  CellRunner& operator=(const CellRunner&) = delete;

  /// The record of one cell, without `env` and `at`.
  Record run(const Case& c, const CellOptions& options);

 private:
  struct ProblemData;
  class Cell;

  ProblemData& problem_for(const Case& c);

  StageListener listener_;
  std::unique_ptr<ProblemData> problem_;
  std::unique_ptr<DeviceClock> clock_;
};

}  // namespace longca
