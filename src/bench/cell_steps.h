#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "attention/api/kernel.h"
#include "bench/cell.h"
#include "bench/cell_memory.h"
#include "bench/cell_problem.h"
#include "bench/cell_tensors.h"
#include "bench/measurement.h"

namespace longca {

/// The steps of one cell on its way to a record: plan, run, verify, time.
class CellSteps {
 public:
  /// `clock` is null for a cell that is not timed; `memory_limit` in bytes, 0 for none. Everything
  /// outlives this object.
  CellSteps(const Case& c, const CellOptions& options, CellProblem& shared, DeviceClock* clock,
            std::int64_t memory_limit, const StageListener& stage, Record& record);

  /// Throws whatever the kernel throws; the record is not complete then.
  void run();

 private:
  const Inputs& inputs() const { return shared_.inputs; }
  Device& device() const { return Device::get(problem_.device); }

  Support supported() const;
  bool fits_in_memory();
  void make_plan();
  void first_run(const std::function<void()>& call);
  void run_forward();
  void run_backward();
  void note_plan();
  void verify(Pass pass);
  Verdict check_forward();
  Verdict check_backward();
  void expect_same_bits();
  void time();
  bool keeps_to_queue(const std::function<void()>& call, const std::function<void()>& prepare);
  double patience_s(const std::function<void()>& call) const;
  MeasureOptions measure_options() const;
  double flops() const;
  std::uint64_t result_fingerprint() const;
  void fail(std::string reason);

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
  double warmed_s_ = 0;                ///< by the call that was verified last
  std::optional<double> repeated_ms_;  ///< of a repetition before those that are timed
  double kernel_s_ = 0;                ///< that the case's limit has counted so far
};

}  // namespace longca
