#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/cell/problem.h"
#include "bench/measure/device_clock.h"
#include "bench/record/record.h"
#include "bench/suite/case.h"
#include "bench/suite/own_files.h"
#include "bench/suite/suite.h"

namespace longca {

class Cell;
class StateWatch;

/// How to run a cell.
struct CellOptions {
  bool timed = true;  ///< false: verified only
  /// memory_limit_mib applies to the case's device; 0: what a GPU has free, no limit on the CPU.
  RunLimits limits;
  OwnFiles own_files;                         ///< of the case
  std::optional<std::filesystem::path> dump;  ///< folder for its inputs and outputs
  bool trace = false;  ///< for a timed cell over ranks: also when each op of a repetition ran
};

/// What consecutive cells of a process share: the current problem with its inputs and reference,
/// and a clock per device.
class SharedByCells {
 public:
  /// The current problem if it is the case's, else a new one in its place.
  CellProblem& problem_for(const Case& c);
  DeviceClock* clock_for(DeviceKind device);
  /// Leaks everything: memory of a lost device cannot be freed, and the process is about to end.
  void leak();

 private:
  std::unique_ptr<CellProblem> problem_;
  std::array<std::unique_ptr<DeviceClock>, 2> clocks_;  ///< by DeviceKind
};

/// Runs cells in this process. Whatever a kernel throws becomes the cell's status; the parent deals
/// with the end of the process.
class CellRunner {
 public:
  /// `watch`, if given, checks what each stage leaves behind; it must outlive this object.
  explicit CellRunner(StageListener listener, StateWatch* watch = nullptr)
      : listener_(std::move(listener)), watch_(watch) {}

  /// The record of one cell, without `env` and `at`. Throws DumpFailed.
  Record run(const Case& c, const CellOptions& options);
  /// Whether an error has left the device unusable: this process must end, and not by `exit`, whose
  /// destructors could hang.
  bool device_lost() const { return device_lost_; }
  /// Whether a kernel has left something behind that `watch` has found, or kernels a large part of
  /// the GPU's memory: a new process should run the next cell.
  bool is_spoilt() const { return spoilt_; }

 private:
  void judge_what_is_left(std::string_view stage, Record& record);
  /// Adds up what kernels have left in this process.
  void count_memory_left(DeviceKind kind, std::int64_t bytes, StatusCode code);
  void give_up_device(const std::string& fault, const std::string& stage,
                      std::unique_ptr<Cell> cell, Record& record);

  StageListener listener_;
  StateWatch* watch_;
  SharedByCells shared_;
  bool device_lost_ = false;
  bool spoilt_ = false;
  std::int64_t memory_left_ = 0;  ///< bytes on the GPU that ended cells have left
};

}  // namespace longca
