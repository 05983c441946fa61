#include "bench/cell_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "attention/api/registry.h"
#include "attention/inputs/inputs.h"
#include "bench/cell_notes.h"
#include "bench/cell_selection.h"
#include "bench/dump.h"
#include "bench/gpu_sampler.h"
#include "core/error.h"

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a case's limit: a kernel that is slow, not stuck, gets its time, if from few samples.
constexpr double kShareForTiming = 0.8;

/// s: how long the queue is held back to see whether a kernel works beside it: as long as a call
/// takes and the least, the most at most.
constexpr double kMinPatience = 0.001;
constexpr double kMaxPatience = 0.05;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string in_mib(std::int64_t bytes) {
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

CellSteps::CellSteps(const Case& c, const CellOptions& options, CellProblem& shared,
                     DeviceClock* clock, std::int64_t memory_limit, const StageListener& stage,
                     Record& record)
    : case_(c),
      problem_(c.problem()),
      kernel_(KernelRegistry::global().find(c.kernel, problem_.device)),
      options_(options),
      shared_(shared),
      clock_(clock),
      memory_limit_(memory_limit),
      stage_(stage),
      record_(record) {}

void CellSteps::run() {
  record_.metrics["area"] = shared_.generated.mask.mean_area();
  note_empty_rows(shared_, record_);
  record_.status = supported();
  if (!record_.status.ok() || !fits_in_memory()) return;
  shared_.make_inputs_and_reference(case_, options_.limits.verify_budget_s, stage_);
  outputs_ = Outputs::for_problem(problem_);
  memory_.emplace(device(), tensor_bytes(problem_));
  make_plan();
  run_forward();
  if (problem_.backward) run_backward();
  if (options_.dump) {
    stage_("dump");
    dump_cell(*options_.dump, device(), inputs(), outputs_, shared_.generated, shared_.spec);
  }
  if (record_.status.ok() && options_.timed) time();
  stage_("clean-up");
  note_plan();
  plan_.reset();
  device().synchronize();  // an error of anything that is still queued is this cell's
  if (fingerprint(shared_.inputs, device()) != shared_.inputs_fingerprint) {
    fail("the kernel wrote into its inputs");
    shared_.reference.reset();  // the next cell draws its own
  }
  if (record_.status.ok()) {
    stage_("selection");
    note_selection(case_, shared_, options_.timed ? clock_ : nullptr, options_.limits.time_limit_s,
                   record_);
  } else {
    forget_times(record_);
  }
}

void CellSteps::fail(std::string reason) {
  if (record_.status.ok()) record_.status = {StatusCode::wrong, std::move(reason)};
}

Support CellSteps::supported() const {
  if (case_.mode == "graph" && problem_.device == DeviceKind::cpu) {
    return Support::unsupported("mode graph replays a CUDA graph, which the CPU does not have");
  }
  if (Support kernel = kernel_.supports(problem_, shared_.generated.mask); !kernel.ok())
    return kernel;
  return inputs_offered(problem_.dtype);
}

/// `oom` before anything is allocated, where tensors and reference alone are too large.
bool CellSteps::fits_in_memory() {
  const std::int64_t tensors = tensor_bytes(problem_);
  const std::int64_t reference = estimate_verifier_bytes(
      problem_, shared_.generated.mask, VerifyBudget{options_.limits.verify_budget_s});
  if (memory_limit_ == 0 || tensors + reference <= memory_limit_) return true;
  record_.status = {StatusCode::oom,
                    fmt::format("inputs and outputs of {} and a reference of {} "
                                "pass the memory limit of {}",
                                in_mib(tensors), in_mib(reference), in_mib(memory_limit_))};
  return false;
}

void CellSteps::make_plan() {
  stage_("plan");
  const auto begin = Clock::now();
  plan_ = kernel_.plan(problem_, shared_.generated.mask);
  device().synchronize();
  const double plan_s = seconds_since(begin);
  record_.metrics["plan_ms"] = std::max(plan_s * 1e3 - plan_->compile_ms(), 0.0);
  kernel_s_ += plan_s;
}

/// What compiling took is no warm-up.
void CellSteps::first_run(const std::function<void()>& call) {
  const double compiled_ms = plan_->compile_ms();
  const auto begin = Clock::now();
  call();
  device().synchronize();
  const double elapsed_s = seconds_since(begin);
  warmed_s_ = elapsed_s - (plan_->compile_ms() - compiled_ms) / 1e3;
  kernel_s_ += elapsed_s;
  memory_->note(record_, *plan_);
  memory_->note_device(record_);
}

void CellSteps::run_forward() {
  stage_("forward");
  outputs_.poison_forward();
  first_run([&] { plan_->forward(outputs_.forward_args(inputs())); });
  verify(Pass::forward);
}

void CellSteps::run_backward() {
  stage_("backward");
  outputs_.poison_backward();
  first_run([&] { plan_->backward(outputs_.backward_args(inputs())); });
  verify(Pass::backward);
  if (problem_.deterministic && record_.status.ok()) expect_same_bits();
}

void CellSteps::expect_same_bits() {
  const std::uint64_t first = result_fingerprint();
  outputs_.poison_backward();
  plan_->backward(outputs_.backward_args(inputs()));
  device().synchronize();
  if (result_fingerprint() != first) {
    fail("deterministic=1, and a second call gave gradients of other bits");
  }
}

/// What the plan tells of itself at its end.
void CellSteps::note_plan() {
  if (const double ms = plan_->compile_ms(); ms > 0) record_.metrics["compile_ms"] = ms;
  record_.notes.merge(plan_->notes());
  if (std::string version = kernel_.version(); !version.empty()) {
    record_.notes.try_emplace("version", std::move(version));
  }
}

void CellSteps::verify(Pass pass) {
  stage_("verify");
  memory_->pause();
  const Verdict verdict = pass == Pass::forward ? check_forward() : check_backward();
  note_verdict(verdict, record_);
  if (!verdict.ok) {
    const bool own_forward = pass == Pass::forward && problem_.backward;
    fail((own_forward ? "its own forward pass: " : "") + verdict.reason);
  }
  memory_->resume();
}

Verdict CellSteps::check_backward() {
  BackwardArgs args = outputs_.backward_args(inputs());
  if (!kernel_.capabilities().returns_lse) args.lse.data = nullptr;
  return shared_.reference->check_backward(args);
}

Verdict CellSteps::check_forward() {
  const ConstLseView lse(outputs_.lse.view());
  const bool has_lse = kernel_.capabilities().returns_lse;
  if (!has_lse) record_.notes["lse"] = "not returned";
  return shared_.reference->check_forward(outputs_.o.view(), has_lse ? &lse : nullptr);
}

/// Times the case's pass. Outputs are poisoned before each repetition of a burst (once, before a
/// sustained run), and what the last one left is compared with what was verified: equal to the
/// bit, or else it is verified again.
void CellSteps::time() {
  const bool backward = problem_.backward;
  const std::uint64_t verified = result_fingerprint();
  const ForwardArgs forward = outputs_.forward_args(inputs());
  const BackwardArgs gradients = backward ? outputs_.backward_args(inputs()) : BackwardArgs{};
  std::function<void()> call = [&] {
    backward ? plan_->backward(gradients) : plan_->forward(forward);
  };
  const auto prepare = [&] { backward ? outputs_.poison_backward() : outputs_.poison_forward(); };
  stage_("time");
  if (!keeps_to_queue(call, prepare)) return;
  try {
    if (parse_measure_mode(case_.mode) == MeasureMode::graph) call = clock_->as_graph(call);
  } catch (const GraphRefused& refused) {
    record_.status = Status::unsupported(refused.what());
    return;
  }
  prepare();
  GpuSampler sampler(device().properties().pci_bus_id);
  const Measurement measured = measure(*clock_, call, prepare, measure_options());
  sampler.finish(record_);
  memory_->note(record_, *plan_);
  note_measurement(measured, flops(), record_);
  if (result_fingerprint() == verified) return;
  if (problem_.deterministic)
    fail("deterministic=1, and the last call gave gradients of other bits");
  verify(case_.pass);
  if (!record_.status.ok()) {
    record_.status.reason = "after the timed repetitions: " + record_.status.reason;
  }
}

/// Work beside the queue would lie outside its events: no time of it could be trusted. False if the
/// kernel has such.
bool CellSteps::keeps_to_queue(const std::function<void()>& call,
                               const std::function<void()>& prepare) {
  const Tensor& output = problem_.backward ? outputs_.dv : outputs_.o;
  if (problem_.device == DeviceKind::cpu || output.bytes() < DeviceClock::kPeekedBytes) return true;
  const double patience = patience_s(call);
  prepare();
  clock_->flush_caches();
  const auto held = clock_->hold_back(call, output.view().data, patience);
  repeated_ms_ = held.ms;
  if (held.kept) return true;
  fail(
      "it does not keep to the stream that it was given: it wrote its result while that was held "
      "back");
  return false;
}

/// By another call, unless the verified one, which also loaded code, says already that it is long.
double CellSteps::patience_s(const std::function<void()>& call) const {
  if (warmed_s_ >= kMaxPatience) return kMaxPatience;
  const auto begin = Clock::now();
  call();
  device().synchronize();
  return std::min(seconds_since(begin) + kMinPatience, kMaxPatience);
}

MeasureOptions CellSteps::measure_options() const {
  MeasureOptions options;
  options.mode = parse_measure_mode(case_.mode);
  options.time_limit_s = options_.limits.time_limit_s;
  options.cool_down_ms = options_.limits.cool_down_ms;
  // On a GPU that call also loaded code, maybe compiled it, while the clocks stood low.
  if (problem_.device == DeviceKind::cpu) options.warmed_s = warmed_s_;
  options.repeated_ms = repeated_ms_;
  options.time_left_s = kShareForTiming * options_.limits.case_limit_s - kernel_s_;
  return options;
}

std::uint64_t CellSteps::result_fingerprint() const {
  return problem_.backward ? outputs_.backward_fingerprint() : outputs_.forward_fingerprint();
}

double CellSteps::flops() const {
  return problem_.backward ? backward_flops(problem_, shared_.generated.mask)
                           : forward_flops(problem_, shared_.generated.mask);
}

}  // namespace longca
