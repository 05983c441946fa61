#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "bench/case.h"
#include "bench/cell_problem.h"
#include "bench/device_clock.h"
#include "bench/record.h"
#include "bench/suite.h"

namespace longca {

class CellSteps;

/// How a cell is to be run.
struct CellOptions {
  bool timed = true;  ///< false: verified only
  /// memory_limit_mib is that of the case's device; 0: what a GPU has free, no limit on the CPU.
  RunLimits limits;
  std::optional<std::filesystem::path> dump;  ///< writes inputs and outputs into this folder
  /// Of a timed cell over ranks: writes when each op of one repetition ran (rank_trace.h).
  std::optional<std::filesystem::path> trace;
};

/// Runs cells in this process, keeping the inputs and the reference of the current problem for the
/// next one. Whatever a kernel throws becomes the cell's status; what ends the process is the
/// parent's to see.
class CellRunner {
 public:
  explicit CellRunner(StageListener listener);
  ~CellRunner();
  CellRunner(const CellRunner&) = delete;
  CellRunner& operator=(const CellRunner&) = delete;

  /// The record of one cell, without `env` and `at`.
  Record run(const Case& c, const CellOptions& options);
  /// Whether an error has left the device unusable: this process must end, and not by `exit`.
  bool device_lost() const { return device_lost_; }

 private:
  CellProblem& problem_for(const Case& c);
  DeviceClock* clock_for(DeviceKind device);
  void give_up_device(const std::string& fault, const std::string& stage,
                      std::unique_ptr<CellSteps> cell, Record& record);

  StageListener listener_;
  std::unique_ptr<CellProblem> problem_;
  std::array<std::unique_ptr<DeviceClock>, 2> clocks_;  ///< by DeviceKind
  bool device_lost_ = false;
};

}  // namespace longca
