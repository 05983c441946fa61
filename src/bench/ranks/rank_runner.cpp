#include "bench/ranks/rank_runner.h"

#include <fmt/format.h>

#include <utility>

#include "attention/inputs/inputs.h"
#include "bench/cell_device.h"
#include "bench/cell_notes.h"
#include "bench/ranks/agreement.h"
#include "bench/ranks/rank_cell.h"

namespace longca {

RankRunner::RankRunner(RankTeam& team, StageListener listener)
    : team_(team), listener_(std::move(listener)) {}
RankRunner::~RankRunner() = default;

/// What this rank can say about a case, and makes for it, by itself.
Status RankRunner::set_up(const Case& c, const CellOptions& options) {
  if (!c.scheme || !c.ranks || !c.shard || !c.transport) {
    return Status::unsupported("the case has no scheme, ranks, shard or transport");
  }
  if (*c.ranks != team_.control.size()) {
    return Status::unsupported(
        fmt::format("the case is one of {} ranks, but {} run", *c.ranks, team_.control.size()));
  }
  if (c.mode == "graph") {
    return Status::unsupported(
        "mode graph replays the work of one GPU, not of ranks that wait for each other");
  }
  if (Support offered = inputs_offered(c.dtype); !offered.ok()) return offered;
  const DeviceKind kind = c.problem().device;
  if (Support there = usable(c.kernel, kind); !there.ok()) return there;
  if (!problem_ || problem_->key != c.problem_key()) {
    problem_.reset();  // before the next one takes its memory
    Device::get(kind).memory().release_cache();
    problem_ = std::make_unique<CellProblem>(c);
  }
  auto& clock = clocks_[static_cast<std::size_t>(kind)];
  if (options.timed && !clock) clock = make_device_clock(kind);
  memory_limit_ = limit_memory(kind, options.limits);
  return {};
}

Record RankRunner::run(const Case& c, const CellOptions& options) {
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = [&](std::string_view next) {
    stage = next;
    listener_(next);
  };
  const DeviceKind kind = c.problem().device;
  std::unique_ptr<RankCell> cell;
  try {
    together(team_.control, stage, [&] { return set_up(c, options); });
    DeviceClock* clock = options.timed ? clocks_[static_cast<std::size_t>(kind)].get() : nullptr;
    together(team_.control, stage, [&]() -> Status {
      cell = std::make_unique<RankCell>(c, options, *problem_, clock, memory_limit_, team_,
                                        listener, alter_, record);
      return {};
    });
    cell->run();
  } catch (const Refused& refused) {
    record.status = refused.status();
  } catch (...) {
    throw RankFailure(status_of(stage, []() -> Status { throw; }));
  }
  if (!record.status.ok()) forget_times(record);
  look_for_lost_devices(kind, std::move(cell), record);
  return record;
}

/// Nothing of a device that is lost can be given back: the process will end, and until then it
/// keeps what it has.
void RankRunner::look_for_lost_devices(DeviceKind kind, std::unique_ptr<RankCell> cell,
                                       Record& record) {
  const bool there = Device::available(kind).ok();
  const auto fault = there ? fault_after_all_work(Device::get(kind)) : std::nullopt;
  if (team_.control.max(fault ? 1 : 0) == 0) return;
  device_lost_ = true;
  [[maybe_unused]] const auto* leaked_cell = cell.release();
  [[maybe_unused]] const auto* leaked_problem = problem_.release();
  for (auto& clock : clocks_) [[maybe_unused]] const auto* leaked_clock = clock.release();
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
