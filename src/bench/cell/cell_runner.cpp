#include "bench/cell/cell_runner.h"

#include <fmt/format.h>

#include <utility>

#include "bench/cell/cell.h"
#include "bench/cell/device.h"
#include "bench/cell/dump.h"
#include "bench/cell/steps.h"
#include "bench/run/state_watch.h"
#include "core/error.h"
#include "core/memory.h"

namespace longca {

CellProblem& SharedByCells::problem_for(const Case& c) {
  if (!problem_ || problem_->key != c.problem_key()) {
    problem_.reset();  // before the next one takes its memory
    Device::get(c.problem().device).memory().release_cache();
    problem_ = std::make_unique<CellProblem>(c);
  }
  return *problem_;
}

DeviceClock* SharedByCells::clock_for(DeviceKind device) {
  auto& clock = clocks_[static_cast<std::size_t>(device)];
  if (!clock) clock = make_device_clock(device);
  return clock.get();
}

void SharedByCells::leak() {
  [[maybe_unused]] const auto* leaked_problem = problem_.release();
  for (auto& clock : clocks_) [[maybe_unused]] const auto* leaked_clock = clock.release();
}

void CellRunner::give_up_device(const std::string& fault, const std::string& stage,
                                std::unique_ptr<Cell> cell, Record& record) {
  device_lost_ = true;
  [[maybe_unused]] const auto* leaked_cell = cell.release();
  shared_.leak();
  if (record.status.code != StatusCode::crash ||
      record.status.reason.find(fault) == std::string::npos) {
    record.status = {StatusCode::crash, fmt::format("in {} the device failed: {}", stage, fault)};
  }
  forget_times(record);
}

void CellRunner::judge_what_is_left(std::string_view stage, Record& record) {
  if (watch_ == nullptr) return;
  watch_->check(stage);
  if (record.metrics.contains("plan_ms")) {
    if (std::string why = watch_->check_idle(stage); !why.empty()) {
      record.notes["threads left"] = std::move(why);
    }
  }
  const std::string finding = watch_->take_finding();
  if (finding.empty()) return;
  spoilt_ = true;
  set_wrong(record, finding);
  forget_times(record);
}

void CellRunner::count_memory_left(DeviceKind kind, std::int64_t bytes, StatusCode code) {
  constexpr std::int64_t kLargestPart = 8;  // of the device: one in this many
  if (kind == DeviceKind::cpu) return;
  memory_left_ += bytes;
  if (memory_left_ > Device::get(kind).properties().memory_bytes / kLargestPart ||
      (code == StatusCode::oom && memory_left_ >= kNotedLeftBytes)) {
    spoilt_ = true;
  }
}

Record CellRunner::run(const Case& c, const CellOptions& options) {
  Record record;
  record.c = c;
  std::string stage = "set-up";
  const StageListener listener = keep_stage(stage, listener_, watch_);
  const DeviceKind kind = c.problem().device;
  if (record.status = usable(c.kernel, kind); !record.status.ok()) return record;
  if (record.status = read_own_files(options.own_files, c); !record.status.ok()) return record;
  std::unique_ptr<Cell> cell;
  try {
    CellProblem& problem = shared_.problem_for(c);
    DeviceClock* clock = options.timed ? shared_.clock_for(kind) : nullptr;
    const std::int64_t limit = limit_memory(kind, options.limits);
    cell = std::make_unique<Cell>(c, options, problem, clock, limit, listener, record);
    cell->run();
  } catch (const DumpFailed&) {
    throw;
  } catch (const InputError& error) {
    // Of the mask: what it asks for is beyond a limit, and no kernel has run.
    const bool is_asked_for = stage == "set-up";
    record.status = is_asked_for ? Status{StatusCode::unsupported, error.what()}
                                 : current_exception_status(stage);
  } catch (...) {
    record.status = current_exception_status(stage);
  }
  judge_what_is_left(stage, record);
  if (const auto fault = fault_after_all_work(Device::get(kind))) {
    give_up_device(*fault, stage, std::move(cell), record);
  } else if (cell) {
    count_memory_left(kind, cell->left_bytes(), record.status.code);
  }
  return record;
}

}  // namespace longca
