#include "bench/cell.h"

#include <fmt/format.h>

#include <utility>

#include "bench/cell_device.h"
#include "bench/cell_notes.h"
#include "bench/cell_problem.h"
#include "bench/cell_steps.h"
#include "core/memory.h"

namespace longca {

CellRunner::CellRunner(StageListener listener) : listener_(std::move(listener)) {}
CellRunner::~CellRunner() = default;

CellProblem& CellRunner::problem_for(const Case& c) {
  if (!problem_ || problem_->key != c.problem_key()) {
    problem_.reset();  // before the next one takes its memory
    Device::get(c.problem().device).memory().release_cache();
    problem_ = std::make_unique<CellProblem>(c);
  }
  return *problem_;
}

DeviceClock* CellRunner::clock_for(DeviceKind device) {
  auto& clock = clocks_[static_cast<std::size_t>(device)];
  if (!clock) clock = make_device_clock(device);
  return clock.get();
}

/// Nothing of a device that is lost can be given back: the process will end, and until then it
/// keeps what it has.
void CellRunner::give_up_device(const std::string& fault, const std::string& stage,
                                std::unique_ptr<CellSteps> cell, Record& record) {
  device_lost_ = true;
  [[maybe_unused]] const auto* leaked_cell = cell.release();
  [[maybe_unused]] const auto* leaked_problem = problem_.release();
  for (auto& clock : clocks_) [[maybe_unused]] const auto* leaked_clock = clock.release();
  if (record.status.code != StatusCode::crash ||
      record.status.reason.find(fault) == std::string::npos) {
    record.status = {StatusCode::crash, fmt::format("in {} the device failed: {}", stage, fault)};
  }
  forget_times(record);
}

Record CellRunner::run(const Case& c, const CellOptions& options) {
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = [&](std::string_view next) {
    stage = next;
    listener_(next);
  };
  const DeviceKind kind = c.problem().device;
  if (record.status = usable(c.kernel, kind); !record.status.ok()) return record;
  std::unique_ptr<CellSteps> cell;
  try {
    CellProblem& problem = problem_for(c);
    DeviceClock* clock = options.timed ? clock_for(kind) : nullptr;
    const std::int64_t limit = limit_memory(kind, options.limits);
    cell = std::make_unique<CellSteps>(c, options, problem, clock, limit, listener, record);
    cell->run();
  } catch (const OutOfMemory& error) {
    record.status = {StatusCode::oom, fmt::format("in {}: {}", stage, error.what())};
  } catch (const std::bad_alloc&) {
    record.status = {StatusCode::oom, fmt::format("in {}: an allocation was refused", stage)};
  } catch (const std::exception& error) {
    record.status = {StatusCode::crash, fmt::format("threw in {}: {}", stage, error.what())};
  } catch (...) {
    record.status = {StatusCode::crash, fmt::format("threw in {}, not a std::exception", stage)};
  }
  if (const auto fault = fault_after_all_work(Device::get(kind))) {
    give_up_device(*fault, stage, std::move(cell), record);
  }
  return record;
}

}  // namespace longca
