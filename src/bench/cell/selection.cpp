#include "bench/cell/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "attention/selection/select_blocks.h"
#include "bench/measure/measurement.h"
#include "core/memory.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/selection/cuda/block_selector.h"
#endif

namespace longca {
namespace {

/// s for timing a selection: it is the same in all records of a problem.
constexpr double kMaxTime = 0.5;

double measured_ms(DeviceClock& clock, double time_limit_s, const std::function<void()>& call) {
  MeasureOptions options;
  options.time_limit_s = std::min(time_limit_s, kMaxTime);
  clock.begin();
  return measure(clock, {.call = call}, options).median_ms;
}

double time_selection(const Case& c, const CellProblem& problem, DeviceClock& clock,
                      double time_limit_s) {
  const Problem shape = c.problem();
  const BlockChoice choice = block_choice(problem.spec);
  const ConstTensorView q = problem.inputs.q.view();
  const ConstTensorView k = problem.inputs.k.view();
#ifdef LONGCA_WITH_CUDA
  if (shape.device == DeviceKind::cuda) {
    CudaBlockSelector selector(shape, choice);
    const Stream stream = Device::get(shape.device).stream();
    return measured_ms(clock, time_limit_s, [&] { selector.run(q, k, stream); });
  }
#endif
  return measured_ms(clock, time_limit_s, [&] { select_blocks(shape, q, k, choice); });
}

void note_times(const Case& c, CellProblem& problem, DeviceClock& clock, double time_limit_s,
                Record& record) {
  if (!problem.selection_ms) {
    problem.selection_ms = time_selection(c, problem, clock, time_limit_s);
  }
  record.metrics["selection_ms"] = *problem.selection_ms;
  record.metrics["end_to_end_ms"] =
      *problem.selection_ms + record.metrics.at("plan_ms") + record.metrics.at("time_ms");
}

void note_quality(const Case& c, CellProblem& problem, Record& record) {
  if (!problem.quality) {
    problem.quality =
        selection_quality(c.problem(), problem.generated.mask, problem.inputs, c.seed);
  }
  if (problem.quality->rows == 0) return;
  record.metrics["kept_mass"] = problem.quality->kept_mass;
  record.metrics["error_full"] = problem.quality->error_full;
}

}  // namespace

void note_empty_rows(const CellProblem& problem, Record& record) {
  if (problem.rows_without_keys == 0) return;
  const Mask& mask = problem.generated.mask;
  record.notes["rows_without_keys"] =
      fmt::format("{} of {} × {} rows see no key of their kept blocks: their output is 0",
                  problem.rows_without_keys, mask.heads(), mask.q_tokens());
}

void note_selection(const Case& c, CellProblem& problem, DeviceClock* clock, double time_limit_s,
                    Record& record) {
  if (problem.generated.mask.blocks() == nullptr) return;
  if (!c.selects_by_scores() && c.input_style() == InputStyle::normal) return;
  try {
    if (clock != nullptr && c.selects_by_scores() && record.metrics.contains("time_ms")) {
      note_times(c, problem, *clock, time_limit_s, record);
    }
    note_quality(c, problem, record);
  } catch (const OutOfMemory& error) {
    record.notes["selection"] = fmt::format("not measured: {}", error.what());
  }
}

}  // namespace longca
