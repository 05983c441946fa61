#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "attention/api/kernel.h"
#include "bench/cell/cell_runner.h"
#include "bench/cell/device.h"
#include "bench/cell/problem.h"
#include "bench/cell/repetition_check.h"
#include "bench/cell/tensors.h"
#include "bench/measure/measurement.h"

namespace longca {

/// One cell on one device, up to its record: plan, run, verify, time.
class Cell {
 public:
  /// `clock` is null for a cell that is not timed; `memory_limit` in bytes, 0 for none. Everything
  /// must outlive this object.
  Cell(const Case& c, const CellOptions& options, CellProblem& shared, DeviceClock* clock,
       std::int64_t memory_limit, const StageListener& stage, Record& record);

  /// Throws whatever the kernel throws; the record is incomplete then.
  void run();
  /// Bytes of the device that the plan took and that were still allocated after it had ended.
  std::int64_t left_bytes() const { return left_bytes_; }

 private:
  const Inputs& inputs() const { return shared_.inputs; }
  Device& device() const { return Device::get(problem_.device); }

  Support supported() const;
  bool fits_in_memory();
  void make_plan();
  void run_pass(Pass pass);
  void verify(Pass pass);
  void expect_margins_kept();
  void expect_same_bits(std::uint64_t verified);
  void time();
  TimedPass timed_pass();
  Status verify_again();
  bool keeps_to_queue(const std::function<void()>& call, RepetitionCheck& repetitions);
  double hold_time_s(const std::function<void()>& call) const;
  void clean_up();
  std::uint64_t result_fingerprint() const;

  const Case& case_;
  const Problem problem_;
  const Kernel& kernel_;
  const CellOptions& options_;
  CellProblem& shared_;
  DeviceClock* clock_;
  std::int64_t memory_limit_;
  const StageListener& stage_;
  Record& record_;

  Outputs outputs_;
  std::unique_ptr<Plan> plan_;
  std::optional<CellMemory> memory_;
  double warmed_s_ = 0;                ///< duration of the last verified call; for a step of both
  std::optional<double> repeated_ms_;  ///< time of the repetition that keeps_to_queue ran, if any
  std::int64_t left_bytes_ = 0;
  double kernel_s_ = 0;  ///< time counted against the case's limit so far
};

}  // namespace longca
