#include "bench/ranks/rank_runner.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "bench/cell/device.h"
#include "bench/cell/mode_support.h"
#include "bench/cell/problem.h"
#include "bench/cell/steps.h"
#include "bench/ranks/rank_cell.h"
#include "bench/ranks/rank_team.h"
#include "bench/ranks/rank_trace.h"
#include "bench/run/state_watch.h"

namespace longca {

RankRunner::RankRunner(RankTeam& team, StageListener listener, StateWatch* watch)
    : team_(team), listener_(std::move(listener)), watch_(watch) {}
RankRunner::~RankRunner() = default;

/// Checks the case and makes what cells share; without communication.
Status RankRunner::set_up(const Case& c, const CellOptions& options) {
  if (!c.scheme || !c.ranks || !c.shard || !c.transport) {
    return Status::unsupported("the case has no scheme, ranks, shard or transport");
  }
  if (*c.ranks != team_.control.size()) {
    return Status::unsupported(
        fmt::format("the case is one of {} ranks, but {} run", *c.ranks, team_.control.size()));
  }
  if (Support mode = check_mode(c); !mode.ok()) return mode;
  if (options.trace) {
    if (Status can = can_trace(c.pass); !can.ok()) return can;
  }
  const DeviceKind kind = c.problem().device;
  if (Support there = usable(c.kernel, kind); !there.ok()) return there;
  if (Status read = read_own_files(options.own_files, c); !read.ok()) return read;
  shared_.problem_for(c);
  if (options.timed) shared_.clock_for(kind);
  return {};
}

Record RankRunner::run(const Case& c, const CellOptions& options) {
  trace_.clear();
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = keep_stage(stage, listener_, watch_);
  const DeviceKind kind = c.problem().device;
  std::unique_ptr<RankCell> cell;
  try {
    together(team_.control, stage, [&] { return set_up(c, options); });
    together(team_.control, stage, [&]() -> Status {
      DeviceClock* clock = options.timed ? shared_.clock_for(kind) : nullptr;
      cell = std::make_unique<RankCell>(c, options, shared_.problem_for(c), clock,
                                        limit_memory(kind, options.limits), team_, listener, alter_,
                                        record);
      return {};
    });
    cell->run();
    trace_ = cell->take_trace();
  } catch (const Refused& refused) {
    record.status = refused.status();
  } catch (...) {
    throw RankFailure(current_exception_status(stage));
  }
  judge_what_is_left(stage, record);
  if (!record.status.ok()) forget_times(record);
  check_devices(kind, std::move(cell), record);
  return record;
}

void RankRunner::judge_what_is_left(std::string_view stage, Record& record) {
  if (watch_ == nullptr) return;
  watch_->check(stage);
  // Over GPUs threads of NCCL may poll, and nothing tells them from a kernel's.
  if (record.metrics.contains("plan_ms") && record.c.problem().device == DeviceKind::cpu) {
    if (std::string why = watch_->check_idle(stage); !why.empty()) {
      record.notes["threads left"] = std::move(why);
    }
  }
  const std::string finding = watch_->take_finding();
  spoilt_ = team_.control.max(finding.empty() ? 0 : 1) > 0;
  if (!spoilt_) return;
  const std::vector<std::string> findings = team_.control.gather(finding);
  for (std::size_t rank = 0; rank < findings.size(); ++rank) {
    if (!findings[rank].empty())
      set_wrong(record, fmt::format("rank {}: {}", rank, findings[rank]));
  }
}

void RankRunner::check_devices(DeviceKind kind, std::unique_ptr<RankCell> cell, Record& record) {
  const bool there = Device::available(kind).ok();
  const auto fault = there ? fault_after_all_work(Device::get(kind)) : std::nullopt;
  if (team_.control.max(fault ? 1 : 0) == 0) return;
  device_lost_ = true;
  [[maybe_unused]] const auto* leaked_cell = cell.release();
  shared_.leak();
  const auto faults = team_.control.gather(fault.value_or(""));
  for (std::size_t rank = 0; rank < faults.size(); ++rank) {
    if (faults[rank].empty()) continue;
    record.status = {StatusCode::crash,
                     fmt::format("rank {}'s device failed: {}", rank, faults[rank])};
    break;
  }
  forget_times(record);
}

}  // namespace longca
