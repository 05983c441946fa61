#pragma once

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/cell.h"
#include "bench/cell_problem.h"
#include "bench/ranks/rank_team.h"
#include "parallel/plan/plan.h"

namespace longca {

class RankCell;

/// What happened to one rank while others may wait for it: they can only be ended.
class RankFailure : public std::runtime_error {
 public:
  explicit RankFailure(Status status)
      : std::runtime_error(status.reason), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Runs cells over ranks, on each of them, keeping what cells of one problem share: the mask, and
/// on rank 0 inputs and reference of the whole.
class RankRunner {
 public:
  /// `team` outlives this object.
  RankRunner(RankTeam& team, StageListener listener);
  ~RankRunner();
  RankRunner(const RankRunner&) = delete;
  RankRunner& operator=(const RankRunner&) = delete;

  /// The record of one cell, without `env` and `at`, on rank 0; other ranks get their own view of
  /// it. Collective. Throws RankFailure.
  Record run(const Case& c, const CellOptions& options);
  /// Whether an error has left some rank's device unusable: all processes must end, and not by
  /// `exit`.
  bool device_lost() const { return device_lost_; }

  /// For tests of what verification finds: changes every plan before it runs.
  void alter_plans(std::function<void(RankPlan&)> alter) { alter_ = std::move(alter); }

 private:
  Status set_up(const Case& c, const CellOptions& options);
  void look_for_lost_devices(DeviceKind kind, std::unique_ptr<RankCell> cell, Record& record);

  RankTeam& team_;
  StageListener listener_;
  std::function<void(RankPlan&)> alter_;
  std::unique_ptr<CellProblem> problem_;
  std::array<std::unique_ptr<DeviceClock>, 2> clocks_;  ///< by DeviceKind
  std::int64_t memory_limit_ = 0;
  bool device_lost_ = false;
};

}  // namespace longca
