#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/cell/cell_runner.h"
#include "bench/cell/problem.h"
#include "bench/ranks/rank_team.h"
#include "parallel/plan/plan.h"

namespace longca {

class RankCell;
class StateWatch;

/// A failure on one rank for which others may be waiting: all ranks must be ended.
class RankFailure : public std::runtime_error {
 public:
  explicit RankFailure(Status status)
      : std::runtime_error(status.reason), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Runs cells over ranks, on each of them. Rank 0 keeps the inputs and reference of the whole
/// problem for consecutive cells that share them.
class RankRunner {
 public:
  /// `watch`, if given, checks what each stage leaves behind. It and `team` must outlive this.
  RankRunner(RankTeam& team, StageListener listener, StateWatch* watch = nullptr);
  ~RankRunner();
  RankRunner(const RankRunner&) = delete;
  RankRunner& operator=(const RankRunner&) = delete;

  /// Returns the record of one cell, without `env` and `at`, on rank 0; the record of another rank
  /// is incomplete. Collective. Throws RankFailure.
  Record run(const Case& c, const CellOptions& options);
  /// Of the last cell, on rank 0, if it was traced: the events of each rank as by trace_of_rank.
  std::vector<std::string> take_trace() { return std::move(trace_); }
  /// Whether an error has left some rank's device unusable: all processes must end, and not by
  /// `exit`, whose destructors could hang.
  bool device_lost() const { return device_lost_; }
  /// Whether a kernel has left some rank's process in another state than it found it, so that what
  /// came next would be another measurement: all processes must end in the same way.
  bool is_spoilt() const { return spoilt_; }

  /// For tests of what verification finds: changes every plan before it runs.
  void alter_plans(std::function<void(RankPlan&)> alter) { alter_ = std::move(alter); }

 private:
  Status set_up(const Case& c, const CellOptions& options);
  void judge_what_is_left(std::string_view stage, Record& record);
  void check_devices(DeviceKind kind, std::unique_ptr<RankCell> cell, Record& record);

  RankTeam& team_;
  StageListener listener_;
  StateWatch* watch_;
  std::function<void(RankPlan&)> alter_;
  SharedByCells shared_;
  std::vector<std::string> trace_;
  bool device_lost_ = false;
  bool spoilt_ = false;
};

}  // namespace longca
