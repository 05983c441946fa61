#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/cell/cell_runner.h"
#include "bench/cell/device.h"
#include "bench/cell/problem.h"
#include "bench/cell/repetition_check.h"
#include "bench/cell/tensors.h"
#include "bench/measure/measurement.h"
#include "bench/ranks/rank_clock.h"
#include "bench/ranks/rank_team.h"
#include "bench/ranks/shard_tensors.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/kernel_computer.h"
#include "parallel/schemes/scheme.h"

namespace longca {

/// One cell on one of its ranks, up to its record: plan, run, verify, time. All ranks take these
/// steps together; rank 0's record is the cell's.
class RankCell {
 public:
  /// `clock`: this rank's, null for a cell that is not timed. `memory_limit`: of this rank's device
  /// in bytes, 0 for none. `alter` changes the plan before it runs (for tests of verification).
  /// Everything must outlive this object.
  RankCell(const Case& c, const CellOptions& options, CellProblem& shared, DeviceClock* clock,
           std::int64_t memory_limit, RankTeam& team, const StageListener& stage,
           const std::function<void(RankPlan&)>& alter, Record& record);
  ~RankCell();
  RankCell(const RankCell&) = delete;
  RankCell& operator=(const RankCell&) = delete;

  /// Throws Refused, on all ranks, if one cannot go on and no communication is pending. Any other
  /// exception is thrown only on the rank where it happened, for which the others may then wait.
  void run();
  /// Of a cell that is traced, on rank 0: the events of each rank as by trace_of_rank.
  std::vector<std::string> take_trace() { return std::move(trace_); }

 private:
  Device& device() const { return Device::get(problem_.device); }
  bool is_root() const { return team_.control.rank() == 0; }
  /// The plan's ops of a pass, which is forward or backward.
  const std::vector<Op>& ops(Pass pass) const {
    return pass == Pass::backward ? plan_.backward : plan_.forward;
  }
  /// The plan's passes that a repetition of the case runs: both for a step.
  std::vector<Pass> timed_passes() const;
  void together(std::string_view stage, const std::function<Status()>& step) const;
  double slowest(double value) const { return team_.control.max(value); }

  void make_plan();
  Status check_memory() const;
  void make_reference();
  void connect();
  void make_executor();
  /// Records what follows from the plan alone: balance, bytes by formula, padding.
  void note_balance();
  void run_pass(Pass pass);
  Status margins_kept() const;
  void wait_for(LaneTimes& times) const;
  void expect_same_bits(std::uint64_t verified);
  void verify(Pass pass, Record& record);
  void time();
  bool time_pass(RankClock& clock);
  PassTensors pass_tensors() const;
  TimedPass timed_pass(std::uint64_t seed);
  void run_once(bool exchanges, LaneTimes* times);
  void trace(RankClock& clock);
  MeasureOptions timing_options(std::uint64_t seed) const;
  void note_times(const Measurement& measured, const RankClock& clock);
  void note_computing(const Measurement& measured, const RankClock& clock);
  std::uint64_t result_fingerprint() const;
  void note_end();

  const Case& case_;
  const CellOptions& options_;
  CellProblem& shared_;
  DeviceClock* clock_;
  std::int64_t memory_limit_;
  RankTeam& team_;
  const StageListener& stage_;
  const std::function<void(RankPlan&)>& alter_;
  Record& record_;

  const Problem problem_;
  const Kernel& kernel_;
  const Scheme& scheme_;
  ParallelProblem parallel_;
  RankPlan plan_;
  RankShard shard_;
  std::optional<CellMemory> memory_;
  std::unique_ptr<Communicator> communicator_;
  std::optional<ShardTensors> tensors_;
  std::optional<KernelComputer> computer_;
  std::unique_ptr<Executor> executor_;
  std::uint64_t inputs_fingerprint_ = 0;
  CheckedHeads checked_;      ///< heads whose results are gathered on rank 0
  Outputs whole_;             ///< rank 0: the results of all ranks
  bool holds_whole_ = false;  ///< whether rank 0 has them, at least those of the forward pass
  double plan_ms_ = 0;        ///< of the scheme's own plan
  double warmed_s_ = 0;       ///< duration of the last verified pass; for a step of both
  double sent_ = 0;           ///< bytes sent in the last verified pass; for a step in both
  double kernel_s_ = 0;       ///< time counted against the case's limit so far
  std::vector<std::string> trace_;
};

}  // namespace longca
