#include "bench/cell/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "attention/api/registry.h"
#include "bench/cell/dump.h"
#include "bench/cell/mode_support.h"
#include "bench/cell/selection.h"
#include "bench/cell/steps.h"
#include "bench/measure/gpu_sampler.h"
#include "bench/measure/host_load.h"
#include "core/error.h"

namespace longca {
namespace {

/// How long, in s, the stream is held back to see whether a kernel works on another one: a call's
/// own time plus kMinHold, at most kMaxHold.
constexpr double kMinHold = 0.001;
constexpr double kMaxHold = 0.05;

/// What the plan says of itself, where it can be a time. Throws std::runtime_error where not.
double compile_ms_of(const Plan& plan) {
  const double ms = plan.compile_ms();
  if (ms >= 0 && std::isfinite(ms)) return ms;
  throw std::runtime_error(fmt::format("the plan's compile_ms is {}: at least 0 and finite", ms));
}

}  // namespace

Cell::Cell(const Case& c, const CellOptions& options, CellProblem& shared, DeviceClock* clock,
           std::int64_t memory_limit, const StageListener& stage, Record& record)
    : case_(c),
      problem_(c.problem()),
      kernel_(KernelRegistry::global().find(c.kernel, problem_.device)),
      options_(options),
      shared_(shared),
      clock_(clock),
      memory_limit_(memory_limit),
      stage_(stage),
      record_(record) {}

void Cell::run() {
  record_.metrics["area"] = shared_.generated.mask.mean_area();
  note_empty_rows(shared_, record_);
  record_.status = supported();
  if (!record_.status.ok() || !fits_in_memory()) return;
  shared_.make_inputs_and_reference(case_, options_.limits.verify_budget_s, stage_);
  outputs_ = Outputs::for_problem(problem_);
  memory_.emplace(device(), tensor_bytes(problem_));
  make_plan();
  run_pass(Pass::forward);
  if (problem_.backward) run_pass(Pass::backward);
  if (options_.dump) {
    stage_("dump");
    dump_cell(*options_.dump, device(), inputs(), outputs_, shared_.generated, shared_.spec);
  }
  if (record_.status.ok() && options_.timed) time();
  clean_up();
  if (record_.status.ok()) {
    stage_("selection");
    note_selection(case_, shared_, options_.timed ? clock_ : nullptr, options_.limits.time_limit_s,
                   record_);
  } else {
    forget_times(record_);
  }
}

Support Cell::supported() const {
  if (Support mode = check_mode(case_); !mode.ok()) return mode;
  return kernel_.supports(problem_, shared_.generated.mask);
}

/// False, with status `oom`, if tensors and reference alone, not yet allocated, exceed the limit.
bool Cell::fits_in_memory() {
  if (memory_limit_ == 0) return true;
  const std::int64_t tensors = tensor_bytes(problem_);
  std::string what = "inputs and outputs of " + in_mib(tensors);
  if (tensors <= memory_limit_) {  // else without the estimate, which takes time per token
    const std::int64_t reference = estimate_verifier_bytes(
        problem_, shared_.generated.mask, VerifyBudget{options_.limits.verify_budget_s});
    if (tensors + reference <= memory_limit_) return true;
    what += " and a reference of " + in_mib(reference);
  }
  record_.status = {StatusCode::oom,
                    fmt::format("{} pass the memory limit of {}", what, in_mib(memory_limit_))};
  return false;
}

void Cell::make_plan() {
  stage_("plan");
  const auto begin = SteadyClock::now();
  plan_ = kernel_.plan(problem_, shared_.generated.mask);
  device().synchronize();
  const double plan_s = seconds_since(begin);
  record_.metrics["plan_ms"] = std::max(plan_s * 1e3 - compile_ms_of(*plan_), 0.0);
  kernel_s_ += plan_s;
}

void Cell::run_pass(Pass pass) {
  const bool backward = pass == Pass::backward;
  stage_(to_string(pass));
  backward ? outputs_.poison_backward() : outputs_.poison_forward();
  const double compiled_ms = compile_ms_of(*plan_);
  const auto begin = SteadyClock::now();
  backward ? plan_->backward(outputs_.backward_args(inputs()))
           : plan_->forward(outputs_.forward_args(inputs()));
  device().synchronize();
  const double elapsed_s = seconds_since(begin);
  const double ran_s = elapsed_s - (compile_ms_of(*plan_) - compiled_ms) / 1e3;
  warmed_s_ = case_.pass == Pass::step ? warmed_s_ + ran_s : ran_s;
  kernel_s_ += elapsed_s;
  memory_->note(record_, *plan_);
  memory_->note_device(record_);
  verify(pass);
  if (backward && problem_.deterministic && record_.status.ok()) {
    expect_same_bits(result_fingerprint());
  }
}

void Cell::verify(Pass pass) {
  stage_("verify");
  expect_margins_kept();
  memory_->pause();
  verify_results(pass, problem_, kernel_, shared_, outputs_, record_);
  memory_->resume(CellMemory::TakenBy::runner);
}

void Cell::expect_margins_kept() {
  if (const std::string written = outputs_.written_margin(); !written.empty()) {
    set_wrong(record_, "the kernel wrote outside of its outputs: " + written);
  }
}

/// Runs the backward pass again on the same inputs.
void Cell::expect_same_bits(std::uint64_t verified) {
  outputs_.poison_backward();
  plan_->backward(outputs_.backward_args(inputs()));
  device().synchronize();
  if (result_fingerprint() != verified) {
    set_wrong(record_, "deterministic=1, and a second call gave gradients of other bits");
  }
}

/// Times the case's pass.
void Cell::time() {
  const ForwardArgs forward = outputs_.forward_args(inputs());
  const BackwardArgs gradients =
      problem_.backward ? outputs_.backward_args(inputs()) : BackwardArgs{};
  std::function<void()> call = [&] {
    if (case_.pass != Pass::backward) plan_->forward(forward);
    if (case_.pass != Pass::forward) plan_->backward(gradients);
  };
  stage_("timing");
  RepetitionCheck repetitions(timed_pass());
  if (!keeps_to_queue(call, repetitions)) return;
  MeasureOptions options = measure_options(case_, options_.limits, warmed_s_, kernel_s_);
  options.repeated_ms = repeated_ms_;
  options.seed = unforeseeable_seed();
  try {
    if (options.mode == MeasureMode::graph) call = clock_->as_graph(call);
  } catch (const GraphRefused& refused) {
    record_.status = Status::unsupported(refused.what());
    return;
  }
  const HostLoad host_load;
  GpuSampler sampler(device().properties().pci_bus_id);
  const Measurement measured = measure(*clock_, repetitions.around(call), options);
  sampler.finish(record_);
  host_load.finish(record_);
  memory_->note(record_, *plan_);
  if (measured.goes_on) repetitions.fail_unfinished_work();
  if (!measured.checked) return set_wrong(record_, repetitions.status().reason);
  note_measurement(measured, pass_flops(case_.pass, problem_, shared_.generated.mask), record_);
  note_bits(repetitions, record_);
  if (!problem_.deterministic) return;
  check_determinism(
      repetitions, [this](std::uint64_t verified) { expect_same_bits(verified); }, record_);
}

TimedPass Cell::timed_pass() {
  TimedPass pass{.device = device(),
                 .tensors = outputs_.with(inputs()),
                 .pass = case_.pass,
                 .checked = shared_.reference->checked_heads(),
                 .seed = unforeseeable_seed(),
                 .verify = [this] { return verify_again(); }};
  const Capabilities& can = kernel_.capabilities();
  if (case_.pass == Pass::backward && !(can.gradient_of_parts && can.returns_lse)) {
    pass.inputs_stay = case_.mode == "graph";
    pass.forward = [this] {
      memory_->note_peak(record_);
      memory_->pause();  // two forward passes' tensors at once are the runner's doing
      plan_->forward(outputs_.forward_args(inputs()));
      memory_->resume(CellMemory::TakenBy::kernel);
    };
  }
  return pass;
}

/// Like `verify`, but the record keeps the errors of the first verification.
Status Cell::verify_again() {
  Record repeated;
  memory_->note_peak(record_);
  memory_->pause();
  verify_results(case_.pass, problem_, kernel_, shared_, outputs_, repeated);
  memory_->resume(CellMemory::TakenBy::runner);
  return repeated.status;
}

/// False, with status `wrong`, for a kernel that works outside of its stream: the events would not
/// cover that work, and no time could be trusted.
bool Cell::keeps_to_queue(const std::function<void()>& call, RepetitionCheck& repetitions) {
  const OutputTensor& output = problem_.backward ? outputs_.dv : outputs_.o;
  if (problem_.device == DeviceKind::cpu || output.bytes() < DeviceClock::kPeekedBytes) return true;
  const double hold_s = hold_time_s(call);
  repetitions.prepare();
  repetitions.poison();
  clock_->flush_caches();
  const auto held = clock_->hold_back(call, output.view().data, hold_s);
  repeated_ms_ = held.ms;
  if (!held.kept) {
    set_wrong(record_,
              "it does not keep to the stream that it was given: it wrote its result while that "
              "was held back");
  } else if (!repetitions.check()) {
    set_wrong(record_, repetitions.status().reason);
  } else {
    repetitions.after_check();
  }
  return record_.status.ok();
}

/// How long to hold the stream back, in s. Runs the call once more to time it, since the verified
/// one also loaded code, unless that one was long already.
double Cell::hold_time_s(const std::function<void()>& call) const {
  if (warmed_s_ >= kMaxHold) return kMaxHold;
  const auto begin = SteadyClock::now();
  call();
  device().synchronize();
  return std::min(seconds_since(begin) + kMinHold, kMaxHold);
}

void Cell::clean_up() {
  stage_("clean-up");
  note_plan_end(kernel_, plan_->compile_ms(), plan_->notes(), record_);
  plan_.reset();
  device().synchronize();  // an error of work that is still queued is this cell's
  left_bytes_ = memory_->left_bytes();
  note_memory_left(left_bytes_, record_);
  expect_margins_kept();
  if (fingerprint(shared_.inputs, device()) != shared_.inputs_fingerprint) {
    set_wrong(record_, "the kernel wrote into its inputs");
    shared_.reference.reset();  // the next cell draws its own inputs
  }
}

std::uint64_t Cell::result_fingerprint() const {
  return hash_results(device(), outputs_.with(shared_.inputs), case_.pass);
}

}  // namespace longca
