#include <algorithm>

#include "bench/cell/steps.h"
#include "bench/measure/gpu_sampler.h"
#include "bench/ranks/rank_cell.h"
#include "bench/ranks/rank_trace.h"

namespace longca {
namespace {

constexpr int kRepetitionsToTrace = 4;  // the last one counts

}  // namespace

/// Times the case's pass on all ranks, then the same without exchanges. What the timed repetitions
/// left must be equal to the bit to what was verified on every rank; otherwise it is verified
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
  const Measurement measured = measure(clock, call, prepare, timing_options());
  sampler.finish(record_);
  memory_->note_peak(record_);
  note_times(measured, clock);
  if (slowest(result_fingerprint() == verified ? 0 : 1) > 0) {
    if (problem_.deterministic) {
      set_wrong(record_, "deterministic=1, and the last pass gave gradients of other bits");
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

/// Times the same steps on the buffers as they are: only the times have a meaning.
void RankCell::time_computing(RankClock& clock, const std::function<void()>& prepare) {
  const auto call = [&] {
    problem_.backward ? executor_->backward(device().stream(), false)
                      : executor_->forward(device().stream(), false);
  };
  const Measurement measured = measure(clock, call, prepare, timing_options());
  const double own = clock.own_median_ms(measured.samples_ms.size());
  const double mean = team_.control.sum(own) / team_.control.size();
  record_.metrics["compute_ms"] = measured.median_ms;
  record_.metrics["exposed_comm_ms"] = record_.metrics["time_ms"] - measured.median_ms;
  if (mean > 0) record_.metrics["time_imbalance"] = slowest(own) / mean;
}

/// Records the times of all ops in one more repetition, after a few that warm up to it.
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

MeasureOptions RankCell::timing_options() const {
  MeasureOptions options = measure_options(case_, options_.limits, warmed_s_, kernel_s_);
  // The other half of what is left is for timing the computation alone.
  options.time_left_s = std::max(options.time_left_s, 0.0) / 2;
  return options;
}

void RankCell::note_times(const Measurement& measured, const RankClock& clock) {
  const double flops = pass_flops(problem_, shared_.generated.mask);
  note_measurement(measured, flops / team_.control.size(), record_);
  record_.rank_times_ms = team_.control.gather(clock.own_median_ms(measured.samples_ms.size()));
}

std::uint64_t RankCell::result_fingerprint() const {
  return problem_.backward ? tensors_->backward_fingerprint() : tensors_->forward_fingerprint();
}

}  // namespace longca
