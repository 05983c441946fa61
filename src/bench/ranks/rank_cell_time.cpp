#include <algorithm>

#include "bench/cell_notes.h"
#include "bench/gpu_sampler.h"
#include "bench/ranks/rank_cell.h"
#include "bench/ranks/rank_trace.h"

namespace longca {
namespace {

/// Of a case's limit: ranks that are slow, not stuck, get their time, if from few samples.
constexpr double kShareForTiming = 0.8;
constexpr int kRepetitionsToTrace = 4;  // the last one counts

}  // namespace

/// Times the case's pass on all ranks, then the same without exchanges. What the timed repetitions
/// left is compared with what was verified: equal to the bit on every rank, or else it is verified
/// again.
void RankCell::time() {
  const bool backward = problem_.backward;
  const std::uint64_t verified = result_fingerprint();
  const auto call = [&] {
    backward ? executor_->backward(device().stream()) : executor_->forward(device().stream());
  };
  const std::function<void()> prepare = [&] {
    backward ? tensors_->poison_backward() : tensors_->poison_forward();
  };
  stage_("time");
  prepare();
  RankClock clock(*clock_, device(), *communicator_, team_.control);
  GpuSampler sampler(device().properties().pci_bus_id);
  const Measurement measured = measure(clock, call, prepare, measure_options());
  sampler.finish(record_);
  memory_->note_peak(record_);
  note_times(measured, clock);
  if (slowest(result_fingerprint() == verified ? 0 : 1) > 0) {
    if (problem_.deterministic) {
      record_.status = {StatusCode::wrong,
                        "deterministic=1, and the last pass gave gradients of other bits"};
      return;
    }
    verify(problem_.backward ? Pass::backward : Pass::forward);
    if (!record_.status.ok()) {
      record_.status.reason = "after the timed repetitions: " + record_.status.reason;
      return;
    }
  }
  time_computing(clock, prepare);
  if (options_.trace) trace(clock, prepare);
}

/// The same steps on what lies in the buffers: results mean nothing, times do.
void RankCell::time_computing(RankClock& clock, const std::function<void()>& prepare) {
  const auto call = [&] {
    problem_.backward ? executor_->backward(device().stream(), false)
                      : executor_->forward(device().stream(), false);
  };
  const Measurement measured = measure(clock, call, prepare, measure_options());
  const double own = clock.own_median_ms(measured.samples_ms.size());
  const double mean = team_.control.sum(own) / team_.control.size();
  record_.metrics["compute_ms"] = measured.median_ms;
  record_.metrics["exposed_comm_ms"] = record_.metrics["time_ms"] - measured.median_ms;
  if (mean > 0) record_.metrics["time_imbalance"] = slowest(own) / mean;
}

/// One repetition more, with the times of all ops, after a few that bring it where the measured
/// ones were.
void RankCell::trace(RankClock& clock, const std::function<void()>& prepare) {
  const auto times = make_lane_times(problem_.device);
  const auto call = [&] {
    problem_.backward ? executor_->backward(device().stream(), true, times.get())
                      : executor_->forward(device().stream(), true, times.get());
  };
  clock.begin();
  for (int i = 0; i < kRepetitionsToTrace; ++i) {
    prepare();
    clock.flush_caches();
    clock.time_once(call);
  }
  device().synchronize();
  const std::string events =
      trace_of_rank(plan_, ops(), times->times(), problem_.head_dim, problem_.dtype);
  const std::vector<std::string> ranks = team_.control.gather(events);
  together("trace", [&]() -> Status {
    if (is_root()) write_trace(*options_.trace, case_, ranks);
    return {};
  });
}

MeasureOptions RankCell::measure_options() const {
  MeasureOptions options;
  options.mode = parse_measure_mode(case_.mode);
  options.time_limit_s = options_.limits.time_limit_s;
  options.cool_down_ms = options_.limits.cool_down_ms;
  // On a GPU that pass also loaded code, maybe compiled it, while the clocks stood low.
  if (problem_.device == DeviceKind::cpu) options.warmed_s = warmed_s_;
  // Half of what is left is for the computing alone.
  options.time_left_s =
      std::max(kShareForTiming * options_.limits.case_limit_s - kernel_s_, 0.0) / 2;
  return options;
}

void RankCell::note_times(const Measurement& measured, const RankClock& clock) {
  const double flops = problem_.backward ? backward_flops(problem_, shared_.generated.mask)
                                         : forward_flops(problem_, shared_.generated.mask);
  note_measurement(measured, flops / team_.control.size(), record_);
  record_.rank_times_ms = team_.control.gather(clock.own_median_ms(measured.samples_ms.size()));
}

std::uint64_t RankCell::result_fingerprint() const {
  return problem_.backward ? tensors_->backward_fingerprint() : tensors_->forward_fingerprint();
}

}  // namespace longca
