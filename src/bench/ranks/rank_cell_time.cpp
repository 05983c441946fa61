#include <algorithm>
#include <string>

#include "bench/cell/steps.h"
#include "bench/measure/gpu_sampler.h"
#include "bench/measure/host_load.h"
#include "bench/measure/statistics.h"
#include "bench/ranks/rank_cell.h"
#include "bench/ranks/rank_trace.h"
#include "core/error.h"

namespace longca {
namespace {

constexpr int kRepetitionsToTrace = 4;  // the last one counts

/// One seed for all ranks, drawn on rank 0.
std::uint64_t seed_of_all(RankControl& control) {
  return std::stoull(control.broadcast(std::to_string(unforeseeable_seed())));
}

}  // namespace

/// Times the case's pass on all ranks, in turns with the same without exchanges.
void RankCell::time() {
  stage_("timing");
  RankClock clock(*clock_, device(), *communicator_, team_.control);
  if (time_pass(clock) && options_.trace) trace(clock);
}

/// False if a result was wrong.
bool RankCell::time_pass(RankClock& clock) {
  const std::uint64_t seed = seed_of_all(team_.control);
  RepetitionCheck repetitions(timed_pass(seed));
  TimedWork work = repetitions.around([&] { run_once(true, nullptr); });
  work.beside = [&] { run_once(false, nullptr); };
  const HostLoad host_load;
  GpuSampler sampler(device().properties().pci_bus_id);
  const Measurement measured = measure(clock, work, timing_options(seed));
  sampler.finish(record_);
  host_load.finish(record_);
  memory_->note_peak(record_);
  if (measured.goes_on) repetitions.fail_unfinished_work();
  if (!measured.checked) {
    set_wrong(record_, repetitions.status().reason);
    return false;
  }
  note_times(measured, clock);
  note_computing(measured, clock);
  note_bits(repetitions, record_);
  if (problem_.deterministic) {
    check_determinism(
        repetitions, [this](std::uint64_t verified) { expect_same_bits(verified); }, record_);
  }
  return record_.status.ok();
}

/// This rank's inputs, with padding, and its results without, where the plan leaves them.
PassTensors RankCell::pass_tensors() const {
  const RankTensors& own = tensors_->views();
  PassTensors tensors{own.q, own.k, own.v, own.dout, {}, {}, {}, {}, {}, tensors_->dsink()};
  for (const Placement& placement : plan_.results) {
    if (placement.role == TensorRole::lse) {
      tensors.lse.push_back(executor_->lse_result(placement));
      continue;
    }
    TensorView& result = placement.role == TensorRole::o    ? tensors.o
                         : placement.role == TensorRole::dq ? tensors.dq
                         : placement.role == TensorRole::dk ? tensors.dk
                                                            : tensors.dv;
    LONGCA_CHECK(result.data == nullptr, "{} of rank {} ends in two places",
                 to_string(placement.role), plan_.rank);
    result = executor_->result(placement);
  }
  return tensors;
}

TimedPass RankCell::timed_pass(std::uint64_t seed) {
  TimedPass pass{.device = device(),
                 .tensors = pass_tensors(),
                 .pass = case_.pass,
                 .checked = checked_,
                 .seed = seed,
                 .verify =
                     [this] {
                       Record repeated;  // the cell's keeps the errors of the first pass
                       verify(case_.pass, repeated);
                       stage_("timing");
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

/// Notes the times without exchanges, and what exchanges add.
void RankCell::note_computing(const Measurement& measured, const RankClock& clock) {
  const double computing = median(measured.beside_ms);
  const double own = clock.own_median_ms(measured.beside_ms.size(), DeviceClock::Series::beside);
  const double mean = team_.control.sum(own) / team_.control.size();
  record_.metrics["compute_ms"] = computing;
  record_.metrics["exposed_comm_ms"] = measured.median_ms - computing;
  // Of equal times the mean may be rounded up.
  if (mean > 0) record_.metrics["time_imbalance"] = std::max(1.0, slowest(own) / mean);
}

/// Records when all ops ran in one more repetition, after a few that warm up.
void RankCell::trace(RankClock& clock) {
  stage_("trace");
  const auto times = make_lane_times(problem_.device);
  const auto call = [&] { run_once(true, times.get()); };
  clock.begin();
  for (int i = 0; i < kRepetitionsToTrace; ++i) {
    if (case_.pass != Pass::backward) tensors_->poison_forward();
    if (case_.pass != Pass::forward) tensors_->poison_backward();
    clock.flush_caches();
    clock.time_once(call);
  }
  device().synchronize();
  const std::string events =
      trace_of_rank(plan_, ops(case_.pass), times->times(), problem_.head_dim, problem_.dtype);
  trace_ = team_.control.gather(events);
}

MeasureOptions RankCell::timing_options(std::uint64_t seed) const {
  MeasureOptions options = measure_options(case_, options_.limits, warmed_s_, kernel_s_);
  options.seed = seed;
  // A repetition is followed by one of the computation alone.
  options.time_left_s = std::max(options.time_left_s, 0.0) / 2;
  // A check over ranks takes long where bits differ from call to call, as in most backward passes.
  if (problem_.device == DeviceKind::cuda) options.settle_s = kSettled;
  return options;
}

void RankCell::note_times(const Measurement& measured, const RankClock& clock) {
  const double flops = pass_flops(case_.pass, problem_, shared_.generated.mask);
  note_measurement(measured, flops / team_.control.size(), record_);
  record_.rank_times_ms = team_.control.gather(clock.own_median_ms(measured.samples_ms.size()));
}

std::uint64_t RankCell::result_fingerprint() const {
  return hash_results(device(), pass_tensors(), case_.pass);
}

}  // namespace longca
