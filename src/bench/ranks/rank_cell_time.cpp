#include <algorithm>
#include <string>

#include "bench/cell/steps.h"
#include "bench/measure/gpu_sampler.h"
#include "bench/measure/host_load.h"
#include "bench/ranks/rank_cell.h"
#include "bench/ranks/rank_trace.h"

namespace longca {
namespace {

constexpr int kRepetitionsToTrace = 4;  // the last one counts

/// One seed for all ranks, drawn on rank 0.
std::uint64_t seed_of_all(RankControl& control) {
  return std::stoull(control.broadcast(std::to_string(unforeseeable_seed())));
}

PassTensors pass_tensors(const RankTensors& own) {
  return {own.q, own.k, own.v, own.dout, own.o, own.lse, own.dq, own.dk, own.dv, {}};
}

}  // namespace

/// Times the case's pass on all ranks, then the same without exchanges.
void RankCell::time() {
  stage_("time");
  RankClock clock(*clock_, device(), *communicator_, team_.control);
  if (!time_pass(clock)) return;
  const std::function<void()> prepare = [&] {
    if (case_.pass != Pass::backward) tensors_->poison_forward();
    if (case_.pass != Pass::forward) tensors_->poison_backward();
  };
  time_computing(clock, prepare);
  if (options_.trace) trace(clock, prepare);
}

/// False if a result was wrong.
bool RankCell::time_pass(RankClock& clock) {
  const auto call = [&] { run_once(true, nullptr); };
  const std::uint64_t seed = seed_of_all(team_.control);
  RepetitionCheck repetitions(timed_pass(seed));
  const HostLoad host_load;
  GpuSampler sampler(device().properties().pci_bus_id);
  const Measurement measured = measure(clock, repetitions.around(call), timing_options(seed));
  sampler.finish(record_);
  host_load.finish(record_);
  memory_->note_peak(record_);
  if (!measured.checked) {
    set_wrong(record_, repetitions.status().reason);
    return false;
  }
  note_times(measured, clock);
  if (problem_.deterministic) {
    check_determinism(
        repetitions, [this](std::uint64_t verified) { expect_same_bits(verified); }, record_);
  }
  return record_.status.ok();
}

TimedPass RankCell::timed_pass(std::uint64_t seed) {
  const RankTensors& own = tensors_->views();
  TimedPass pass{.device = device(),
                 .tensors = pass_tensors(own),
                 .pass = case_.pass,
                 .checked = checked_,
                 .seed = seed,
                 .verify =
                     [this] {
                       Record repeated;  // the cell's keeps the errors of the first pass
                       verify(case_.pass, repeated);
                       stage_("time");
                       return repeated.status;
                     },
                 .any = [this](bool mine) { return slowest(mine ? 1 : 0) > 0; }};
  // What the forward pass keeps for the backward pass must be recomputed when inputs change.
  const bool keeps = std::ranges::any_of(plan_.buffers, &PlanBuffer::kept);
  if (case_.pass == Pass::backward && pass.any(keeps)) {
    pass.forward = [this] { executor_->forward(device().stream()); };
  }
  return pass;
}

/// One repetition of the case's pass.
void RankCell::run_once(bool exchanges, LaneTimes* times) {
  for (const Pass pass : timed_passes()) {
    pass == Pass::forward ? executor_->forward(device().stream(), exchanges, times)
                          : executor_->backward(device().stream(), exchanges, times);
  }
}

/// Times the same passes without exchanges; the results are meaningless.
void RankCell::time_computing(RankClock& clock, const std::function<void()>& prepare) {
  const auto call = [&] { run_once(false, nullptr); };
  const Measurement measured = measure(clock, {.call = call, .prepare = prepare}, timing_options());
  const double own = clock.own_median_ms(measured.samples_ms.size());
  const double mean = team_.control.sum(own) / team_.control.size();
  record_.metrics["compute_ms"] = measured.median_ms;
  record_.metrics["exposed_comm_ms"] = record_.metrics["time_ms"] - measured.median_ms;
  if (mean > 0) record_.metrics["time_imbalance"] = slowest(own) / mean;
}

/// Records when all ops ran in one more repetition, after a few that warm up.
void RankCell::trace(RankClock& clock, const std::function<void()>& prepare) {
  stage_("trace");
  const auto times = make_lane_times(problem_.device);
  const auto call = [&] { run_once(true, times.get()); };
  clock.begin();
  for (int i = 0; i < kRepetitionsToTrace; ++i) {
    prepare();
    clock.flush_caches();
    clock.time_once(call);
  }
  device().synchronize();
  const std::string events =
      trace_of_rank(plan_, ops(case_.pass), times->times(), problem_.head_dim, problem_.dtype);
  const std::vector<std::string> ranks = team_.control.gather(events);
  together("trace", [&]() -> Status {
    if (is_root()) write_trace(*options_.trace, case_, ranks);
    return {};
  });
}

MeasureOptions RankCell::timing_options(std::uint64_t seed) const {
  MeasureOptions options = measure_options(case_, options_.limits, warmed_s_, kernel_s_);
  options.seed = seed;
  // The pass and the computation alone get half of the remaining time each.
  options.time_left_s = std::max(options.time_left_s, 0.0) / 2;
  return options;
}

void RankCell::note_times(const Measurement& measured, const RankClock& clock) {
  const double flops = pass_flops(case_.pass, problem_, shared_.generated.mask);
  note_measurement(measured, flops / team_.control.size(), record_);
  record_.rank_times_ms = team_.control.gather(clock.own_median_ms(measured.samples_ms.size()));
}

std::uint64_t RankCell::result_fingerprint() const {
  return hash_results(device(), pass_tensors(tensors_->views()), case_.pass);
}

}  // namespace longca
